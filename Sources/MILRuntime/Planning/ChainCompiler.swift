// Turns the maps and folds of one chain into a block program: values, steps, and how memory is reached.
import RLXKernels

/// The program of a chain before slots are given out. All strides are over one space.
struct ChainProgram {
    struct Operand: Hashable {
        var buffer: Int
        var offset: Int
        var type: ElementType
        var strides: [Int]
    }

    struct Step {
        var op: rlxk_op
        var out: Int
        var arguments: [Int]
        var p: Float
        var q: Float
    }

    struct Value {
        /// One element for all lanes.
        var isScalar: Bool
    }

    struct Output {
        var target: Operand
        var value: Int
    }

    struct Sink {
        var target: Operand
        var value: Int
        var kind: rlxk_fold
    }

    var space: [Int]
    var values: [Value] = []
    /// Values that are read from memory, with the memory.
    var inputs: [(value: Int, operand: Operand)] = []
    var steps: [Step] = []
    var outputs: [Output] = []
    var sinks: [Sink] = []

    private var known: [Operand: Int] = [:]
    private var computed: [Int: Int] = [:]

    /// - Parameter stored: the buffers that something outside of the chain reads.
    init(_ nodes: [Node], space: [Int], stored: Set<Int>) {
        self.space = space
        let consumed = Set(nodes.flatMap { $0.reads.map(\.buffer) })
        for node in nodes {
            switch node.work {
            case .map(let map): add(map, rounds: consumed.contains(map.result.buffer), isStored: stored)
            case .fold(let fold):
                let value = value(of: fold.operand)
                sinks.append(Sink(target: operand(fold.result), value: value, kind: fold.kind))
            case .product, .kernel: preconditionFailure("only maps and folds form chains")
            }
        }
        fuseMultiplyAdd()
        widenScalarResults()
    }

    private func operand(_ view: View) -> Operand {
        // The scheduler has made sure that the view's shape splits into the space.
        let strides =
            space.contains(0)
            ? zip(view.shape, view.strides).filter { $0.0 != 1 }.map(\.1)
            : splitStrides(of: view, over: space)!
        return Operand(buffer: view.buffer, offset: view.offset, type: view.type, strides: strides)
    }

    private mutating func value(of view: View) -> Int {
        if let value = computed[view.buffer] { return value }
        let operand = operand(view)
        if let value = known[operand] { return value }
        values.append(Value(isScalar: !space.isEmpty && operand.strides.allSatisfy { $0 == 0 }))
        known[operand] = values.count - 1
        inputs.append((values.count - 1, operand))
        return values.count - 1
    }

    private mutating func append(_ op: rlxk_op, _ arguments: [Int], p: Float = 0, q: Float = 0) -> Int {
        values.append(Value(isScalar: arguments.allSatisfy { values[$0].isScalar }))
        steps.append(Step(op: op, out: values.count - 1, arguments: arguments, p: p, q: q))
        return values.count - 1
    }

    private mutating func add(_ map: Map, rounds isConsumed: Bool, isStored stored: Set<Int>) {
        let arguments = map.operands.map { value(of: $0) }
        var result = map.op == RLXK_COPY ? arguments[0] : append(map.op, arguments, p: map.p, q: map.q)
        let isExact = map.op.staysExact && map.operands.allSatisfy { $0.type == .float16 || !$0.type.isFloat }
        // Storing rounds anyway.
        if map.result.type == .float16, isConsumed, !isExact { result = append(RLXK_ROUND_F16, [result]) }
        if isConsumed { computed[map.result.buffer] = result }
        if stored.contains(map.result.buffer) { outputs.append(Output(target: operand(map.result), value: result)) }
    }

    // MARK: Rewrites

    private func uses() -> [Int] {
        var uses = Array(repeating: 0, count: values.count)
        for step in steps { for argument in step.arguments { uses[argument] += 1 } }
        for output in outputs { uses[output.value] += 1 }
        for sink in sinks { uses[sink.value] += 1 }
        return uses
    }

    /// A product that only a sum or a difference uses becomes one step with it.
    private mutating func fuseMultiplyAdd() {
        let uses = uses()
        var products: [Int: Int] = [:]
        var removed: Set<Int> = []
        for (index, step) in steps.enumerated() where step.op == RLXK_MUL && uses[step.out] == 1 {
            products[step.out] = index
        }
        for (index, step) in steps.enumerated() where step.op == RLXK_ADD || step.op == RLXK_SUB {
            guard let side = [0, 1].first(where: { products[step.arguments[$0]] != nil }) else { continue }
            let product = products.removeValue(forKey: step.arguments[side])!
            let other = step.arguments[1 - side]
            steps[index].op = step.op == RLXK_ADD ? RLXK_MUL_ADD : side == 0 ? RLXK_MUL_SUB : RLXK_MUL_RSUB
            steps[index].arguments = steps[product].arguments + [other]
            removed.insert(product)
        }
        steps = steps.enumerated().filter { !removed.contains($0.offset) }.map(\.element)
    }

    /// A scalar that goes to memory as more than one element gets lanes of its own.
    private mutating func widenScalarResults() {
        for index in outputs.indices where values[outputs[index].value].isScalar {
            outputs[index].value = widened(outputs[index].value)
        }
        for index in sinks.indices where values[sinks[index].value].isScalar {
            sinks[index].value = widened(sinks[index].value)
        }
    }

    private mutating func widened(_ scalar: Int) -> Int {
        values.append(Value(isScalar: false))
        steps.append(Step(op: RLXK_COPY, out: values.count - 1, arguments: [scalar], p: 0, q: 0))
        return values.count - 1
    }

    // MARK: Space

    /// Merges neighbouring dimensions that every operand walks evenly.
    mutating func collapse() {
        var all = inputs.map(\.operand.strides) + outputs.map(\.target.strides) + sinks.map(\.target.strides)
        var axis = space.count - 2
        while axis >= 0 {
            let size = space[axis + 1]
            if all.allSatisfy({ $0[axis] == $0[axis + 1] * size }) {
                space[axis] *= size
                space.remove(at: axis + 1)
                for index in all.indices { all[index].remove(at: axis) }
            }
            axis -= 1
        }
        var rest = all[...]
        for index in inputs.indices { inputs[index].operand.strides = rest.removeFirst() }
        for index in outputs.indices { outputs[index].target.strides = rest.removeFirst() }
        for index in sinks.indices { sinks[index].target.strides = rest.removeFirst() }
    }
}

extension rlxk_op {
    /// Whether the result is one of the operands' values (up to sign) or a whole number: no rounding is due.
    var staysExact: Bool {
        switch self {
        case RLXK_COPY, RLXK_SELECT, RLXK_MAX, RLXK_MIN, RLXK_ABS, RLXK_NEGATE, RLXK_SIGN, RLXK_RELU, RLXK_FLOOR,
            RLXK_CEIL, RLXK_ROUND, RLXK_ROUND_F16:
            true
        default: false
        }
    }

    /// A rough time per lane.
    var nanoseconds: Double {
        switch self {
        case RLXK_EXP, RLXK_EXP2, RLXK_LOG, RLXK_TANH, RLXK_SIGMOID, RLXK_SILU, RLXK_SOFTPLUS, RLXK_GELU,
            RLXK_GELU_TANH, RLXK_GELU_SIGMOID, RLXK_ERF, RLXK_ELU, RLXK_SIN, RLXK_COS:
            1
        case RLXK_POW, RLXK_FLOOR_DIV, RLXK_MOD, RLXK_DIV_I32, RLXK_FLOOR_DIV_I32, RLXK_MOD_I32, RLXK_POW_I32,
            RLXK_TAN, RLXK_ASIN, RLXK_ACOS, RLXK_ATAN, RLXK_SINH, RLXK_COSH, RLXK_ATANH:
            8
        default: 0.1
        }
    }
}
