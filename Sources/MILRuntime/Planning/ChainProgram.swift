// The maps and folds of one chain as a block program: values, steps, and how memory is reached. Knows no addresses.
import RLXKernels

/// The program of a chain before slots are given out. All strides are over one space.
struct ChainProgram {
    struct Operand: Hashable {
        var buffer: Int
        var offset: Int
        var type: ElementType
        var strides: [Int]
    }

    /// For how many places of the space a value stands.
    enum Extent: Int, Comparable {
        case one, rows, lanes
        static func < (a: Extent, b: Extent) -> Bool { a.rawValue < b.rawValue }
    }

    struct Step {
        var op: rlxk_op
        var out: Int
        /// Results beside `out`, of the same extent.
        var further: [Int] = []
        var arguments: [Int]
        var p: Float = 0
        var q: Float = 0

        var results: [Int] { [out] + further }
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
    /// Dimensions from here on make up a row; the number of dimensions where there are no rows.
    var row: Int
    var extents: [Extent] = []
    /// Values that are read from memory, with the memory.
    var inputs: [(value: Int, operand: Operand)] = []
    var steps: [Step] = []
    var outputs: [Output] = []
    var sinks: [Sink] = []

    private var known: [Operand: Int] = [:]
    private var computed: [Int: Int] = [:]

    /// - Parameter stored: the buffers that something outside of the chain reads.
    init(_ group: Group, stored: Set<Int>) {
        space = group.space
        row = group.row ?? group.space.count
        let consumed = group.reads
        for member in group.members {
            switch member.node.work {
            case .map(let map): add(map, member, isConsumed: consumed.contains(map.result.buffer), stored)
            case .fold(let fold) where fold.row != nil && !member.isRow: add(rowFold: fold, member, stored)
            case .fold(let fold):
                let level: Extent = member.isRow ? .rows : .lanes
                let value = widened(value(of: fold.operand, member), to: level)
                sinks.append(Sink(target: operand(fold.result, member), value: value, kind: fold.kind))
            case .product, .convolution, .kernel: preconditionFailure("only maps and folds form chains")
            }
        }
        fuseSteps()
    }

    private func operand(_ view: View, _ member: ChainMember) -> Operand {
        // The scheduler has made sure that the view's shape splits into the space.
        let strides =
            space.contains(0)
            ? zip(view.shape, view.strides).filter { $0.0 != 1 }.map(\.1)
            : member.strides(of: view, over: space, row: row)!
        return Operand(buffer: view.buffer, offset: view.offset, type: view.type, strides: strides)
    }

    private func extent(of strides: [Int]) -> Extent {
        if space.isEmpty { return .lanes }
        if strides.allSatisfy({ $0 == 0 }) { return .one }
        return row < space.count && strides[row...].allSatisfy { $0 == 0 } ? .rows : .lanes
    }

    private mutating func value(of view: View, _ member: ChainMember) -> Int {
        if let value = computed[view.buffer] { return value }
        let operand = operand(view, member)
        if let value = known[operand] { return value }
        extents.append(extent(of: operand.strides))
        known[operand] = extents.count - 1
        inputs.append((extents.count - 1, operand))
        return extents.count - 1
    }

    private mutating func append(_ op: rlxk_op, _ arguments: [Int], extent: Extent? = nil, p: Float = 0, q: Float = 0)
        -> Int
    {
        extents.append(extent ?? arguments.map { extents[$0] }.max()!)
        steps.append(Step(op: op, out: extents.count - 1, arguments: arguments, p: p, q: q))
        return extents.count - 1
    }

    /// The value with an element for each row or lane.
    private mutating func widened(_ value: Int, to extent: Extent) -> Int {
        extents[value] >= extent || space.isEmpty ? value : append(RLXK_COPY, [value], extent: extent)
    }

    private mutating func add(_ map: Map, _ member: ChainMember, isConsumed: Bool, _ stored: Set<Int>) {
        let arguments = map.operands.map { value(of: $0, member) }
        var result = map.op == RLXK_COPY ? arguments[0] : append(map.op, arguments, p: map.p, q: map.q)
        let isExact = map.op.staysExact && map.operands.allSatisfy { $0.type == .float16 || !$0.type.isFloat }
        // Storing rounds anyway.
        if map.result.type == .float16, isConsumed, !isExact { result = append(RLXK_ROUND_F16, [result]) }
        if isConsumed { computed[map.result.buffer] = result }
        if stored.contains(map.result.buffer) {
            let value = widened(result, to: member.isRow ? .rows : .lanes)
            outputs.append(Output(target: operand(map.result, member), value: value))
        }
    }

    private mutating func add(rowFold fold: Fold, _ member: ChainMember, _ stored: Set<Int>) {
        let lanes = widened(value(of: fold.operand, member), to: .lanes)
        let result = append(fold.rowStep, [lanes], extent: .rows)
        computed[fold.result.buffer] = result
        if stored.contains(fold.result.buffer) {
            outputs.append(Output(target: operand(fold.result, member), value: result))
        }
    }

    /// Whether the step's loop goes over one row at a time.
    func isByRow(_ step: Step) -> Bool {
        step.op.foldsRows || extents[step.out] == .lanes && step.arguments.contains { extents[$0] == .rows }
    }

    // MARK: Space

    /// Merges neighbouring dimensions that every operand walks evenly, but never a row with what is around it.
    mutating func collapse() {
        var all = inputs.map(\.operand.strides) + outputs.map(\.target.strides) + sinks.map(\.target.strides)
        var axis = space.count - 2
        while axis >= 0 {
            let size = space[axis + 1]
            if axis + 1 != row, all.allSatisfy({ $0[axis] == $0[axis + 1] * size }) {
                space[axis] *= size
                space.remove(at: axis + 1)
                for index in all.indices { all[index].remove(at: axis) }
                if axis + 1 < row { row -= 1 }
            }
            axis -= 1
        }
        var rest = all[...]
        for index in inputs.indices { inputs[index].operand.strides = rest.removeFirst() }
        for index in outputs.indices { outputs[index].target.strides = rest.removeFirst() }
        for index in sinks.indices { sinks[index].target.strides = rest.removeFirst() }
    }

    /// A chain of one element has a space of one.
    mutating func fillEmptySpace() {
        guard space.isEmpty else { return }
        space = [1]
        row = 1
        for index in inputs.indices { inputs[index].operand.strides = [1] }
        for index in outputs.indices { outputs[index].target.strides = [1] }
        for index in sinks.indices { sinks[index].target.strides = [0] }
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

    var foldsRows: Bool { self == RLXK_ROW_SUM || self == RLXK_ROW_MAX || self == RLXK_ROW_MIN }

    /// A rough time per element.
    var nanoseconds: Double {
        switch self {
        case RLXK_EXP, RLXK_EXP2, RLXK_LOG, RLXK_TANH, RLXK_SIGMOID, RLXK_SILU, RLXK_SOFTPLUS, RLXK_GELU,
            RLXK_GELU_TANH, RLXK_GELU_SIGMOID, RLXK_ERF, RLXK_ELU, RLXK_SIN, RLXK_COS, RLXK_TAN, RLXK_ASIN, RLXK_ACOS,
            RLXK_ATAN, RLXK_SINH, RLXK_COSH, RLXK_ATANH, RLXK_FLOOR_DIV, RLXK_MOD, RLXK_DIV_I32, RLXK_FLOOR_DIV_I32,
            RLXK_MOD_I32:
            1
        case RLXK_POW, RLXK_POW_I32: 8
        default: 0.1
        }
    }
}
