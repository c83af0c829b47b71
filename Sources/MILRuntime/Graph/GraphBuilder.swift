// Builds the graph: the few kinds of work that every operation is made of. Knows nothing of files and parameters.
import RLXKernels

/// Operations call this to make nodes; each call checks what it needs for the graph to be sound.
final class GraphBuilder {
    private(set) var graph = Graph()
    /// Whom to name in an error.
    var place = RuntimeError.Place.boundary("")
    /// The first node of the operation that is being imported.
    var operationStart = 0
    private let folded: FoldedConstants
    private var smallConstants: [SmallConstant: Int] = [:]
    /// Results of maps and folds, to be had again without computing them twice.
    private var results: [Computation: View] = [:]

    private struct SmallConstant: Hashable {
        var type: ElementType
        var bytes: [UInt8]
    }

    private struct Computation: Hashable {
        var code: UInt32
        var operands: [View]
        var axes: [Int]? = nil
        var type: ElementType
        var p: UInt32 = 0
        var q: UInt32 = 0
    }

    init(folded: FoldedConstants = FoldedConstants()) { self.folded = folded }

    // MARK: Values

    /// A new buffer, to be written by nodes.
    func empty(_ type: ElementType, _ shape: [Int]) throws(RuntimeError) -> View {
        guard let bytes = byteCount(type, shape) else { throw .invalid(.tooLarge(shape), place) }
        return View(buffer: graph.addBuffer(type, count: bytes / type.size), type: type, shape: shape)
    }

    func input(_ name: String, _ type: ElementType, _ shape: [Int]) throws(RuntimeError) -> View {
        let view = try empty(type, shape)
        graph.buffers[view.buffer].origin = .input(name)
        return view
    }

    /// Small constants with the same bytes share a buffer, so that what is computed from them is computed once.
    func constant(_ storage: Storage) -> View {
        let address = UnsafeRawPointer(storage.bytes.baseAddress!)
        guard storage.bytes.count <= Self.largestSharedConstant else {
            return constant(storage.type, storage.shape, at: address, owner: storage)
        }
        let key = SmallConstant(type: storage.type, bytes: Array(storage.bytes))
        if let known = smallConstants[key] { return View(buffer: known, type: storage.type, shape: storage.shape) }
        let view = constant(storage.type, storage.shape, at: address, owner: storage)
        smallConstants[key] = view.buffer
        return view
    }

    private static let largestSharedConstant = 1024

    func constant(_ type: ElementType, _ shape: [Int], at address: UnsafeRawPointer, owner: AnyObject) -> View {
        let count = shape.reduce(1, *)
        let buffer = graph.addBuffer(type, count: count, origin: .constant(address, owner: owner))
        return View(buffer: buffer, type: type, shape: shape)
    }

    /// A rank-0 constant.
    func scalar(_ value: Float, _ type: ElementType) throws(RuntimeError) -> View {
        let storage = try Storage(type: type, shape: [])
        switch type {
        case .float32: storage.fill([value])
        case .float16: storage.fill([rlxk_float_to_half(value)])
        case .int32: storage.fill([Self.integer(value)])
        case .int16, .uint16: storage.fill([UInt16(truncatingIfNeeded: Self.integer(value))])
        case .int8, .uint8, .bool: storage.fill([UInt8(truncatingIfNeeded: Self.integer(value))])
        }
        return constant(storage)
    }

    /// The number without its fraction; what does not fit becomes the nearest that does, NaN 0.
    private static func integer(_ value: Float) -> Int32 {
        if value.isNaN { return 0 }
        return Int32(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }

    func constantAddress(_ view: View) -> UnsafeRawPointer? {
        guard case .constant(let address, _) = graph.buffers[view.buffer].origin else { return nil }
        return address
    }

    /// Where the first element of a constant lies, and who keeps it.
    func constantMemory(_ view: View) -> (address: UnsafeRawPointer, owner: AnyObject)? {
        guard case .constant(let address, let owner) = graph.buffers[view.buffer].origin else { return nil }
        return (address + view.offset * view.type.size, owner)
    }

    /// The constant's elements, or nil when the view is no constant.
    func constantNumbers(_ view: View) -> [Double]? {
        constantAddress(view).map { numbers(in: view, at: $0) }
    }

    /// The same values as a dense view, by a copy if need be.
    func dense(_ view: View) throws(RuntimeError) -> View {
        if view.isDense { return view }
        if let located = located(view) { return try place(located, in: view.shape) }
        return try map(RLXK_COPY, [view], view.type)
    }

    func note(_ placement: Placement) {
        graph.placements[placement.region.buffer] = placement
    }

    func located(_ view: View) -> LocatedSource? {
        graph.placements[view.buffer]?.located(in: view)
    }

    func reshape(_ view: View, _ shape: [Int]) throws(RuntimeError) -> View {
        if let reshaped = view.reshaped(shape) { return reshaped }
        return try dense(view).reshaped(shape)!
    }

    // MARK: Nodes

    func add(_ work: Node.Work) {
        graph.nodes.append(Node(work: work, place: place))
    }

    /// `op` on operands that broadcast together, into a new buffer of `type`.
    func map(
        _ op: rlxk_op, _ operands: [View], _ type: ElementType, p: Float = 0, q: Float = 0
    ) throws(RuntimeError) -> View {
        var shape: [Int] = []
        for operand in operands {
            guard let both = broadcastShape(shape, operand.shape) else {
                throw .invalid(.notBroadcastable(shape, operand.shape), place)
            }
            shape = both
        }
        let computation = Computation(
            code: op.rawValue, operands: operands, type: type, p: p.bitPattern, q: q.bitPattern)
        if let known = results[computation] { return known }
        let result = try empty(type, shape)
        results[computation] = result
        if result.count == 0 { return result }
        add(.map(Map(op: op, operands: operands.map { $0.broadcast(to: shape) }, result: result, p: p, q: q)))
        return result
    }

    /// Copies into a part of another buffer; shapes and types are equal.
    func copy(_ source: View, into target: View) {
        if target.count == 0 { return }
        add(.map(Map(op: RLXK_COPY, operands: [source], result: target)))
    }

    /// Makes a run fail, before it changes anything, unless all of `indices` are in range for `size` elements.
    func check(_ indices: View, below size: Int) throws(RuntimeError) {
        let source = try dense(indices)
        try check(among: size) { failure in
            Kernel(
                run: rlxk_index_check_run, reads: [source], writes: [failure], nanoseconds: Double(source.count)
            ) { arguments, memory in
                UnsafeRawPointer(
                    arguments.store(
                        rlxk_index_check(
                            index: memory.indices(0), count: Int64(source.count), size: Int64(size),
                            failure: memory.write(0).assumingMemoryBound(to: Int32.self))))
            }
        }
    }

    /// Makes a run fail, before it changes anything, unless `kernel` writes zero; else it is one more than the place of
    /// the index, of `size` elements, at fault.
    func check(among size: Int, _ kernel: (View) -> Kernel) throws(RuntimeError) {
        let failure = try empty(.int32, [])
        add(.kernel(kernel(failure)))
        graph.checks.append(Graph.IndexCheck(failure: failure.buffer, size: size, place: place))
    }

    /// Folds `axes`, which stay as dimensions of size 1. The result is f32 for floats and i32 for the others.
    func fold(_ kind: FoldKind, _ operand: View, axes: [Int]) throws(RuntimeError) -> View {
        guard byteCount(operand.type, operand.shape) != nil else { throw .invalid(.tooLarge(operand.shape), place) }
        if axes.allSatisfy({ operand.shape[$0] == 1 }) { return try map(RLXK_COPY, [operand], operand.type.register) }
        let code = kind.code(for: operand.type.register)
        let computation = Computation(code: code.rawValue, operands: [operand], axes: axes, type: operand.type.register)
        if let known = results[computation] { return known }
        var shape = operand.shape
        for axis in axes { shape[axis] = 1 }
        let result = try empty(operand.type.register, shape)
        results[computation] = result
        if result.count == 0 { return result }
        add(.fold(Fold(kind: code, operand: operand, result: result.broadcast(to: operand.shape))))
        return result
    }

    func cast(_ view: View, to type: ElementType) throws(RuntimeError) -> View {
        if view.type == type { return view }
        switch (view.type.isFloat, type) {
        case (true, .float32), (true, .float16), (false, .int32): return try map(RLXK_COPY, [view], type)
        case (true, .bool): return try map(RLXK_F32_TO_BOOL, [view], type)
        case (false, .bool): return try map(RLXK_I32_TO_BOOL, [view], type)
        case (true, .int32): return try map(RLXK_F32_TO_I32, [view], type)
        case (false, .float32), (false, .float16): return try map(RLXK_I32_TO_F32, [view], type)
        case (_, .int8): return try saturated(view, to: type, -128, 127)
        case (_, .uint8): return try saturated(view, to: type, 0, 255)
        case (_, .int16): return try saturated(view, to: type, -32768, 32767)
        case (_, .uint16): return try saturated(view, to: type, 0, 65535)
        }
    }

    private func saturated(_ view: View, to type: ElementType, _ low: Float, _ high: Float) throws(RuntimeError) -> View
    {
        let wide = try cast(view, to: .int32)
        let raised = try map(RLXK_MAX_I32, [wide, scalar(low, .int32)], .int32)
        return try map(RLXK_MIN_I32, [raised, scalar(high, .int32)], type)
    }

    // MARK: Folding constants

    /// Of the nodes from `start` on, runs those that depend on constants only, and makes what they write constant.
    /// Large results and much work are left to every run, unless `always`.
    func foldConstants(from start: Int, always: Bool = false) throws(RuntimeError) {
        let candidates = graph.nodes.indices[start...].filter { !graph.nodes[$0].isRandom }
        var foldable = Set(candidates)
        var isChanging = true
        while isChanging {
            let kept = candidates.filter { !foldable.contains($0) }
            let keptWrites = Set(kept.flatMap { graph.nodes[$0].writes.map(\.buffer) })
            let written = Set(foldable.flatMap { graph.nodes[$0].writes.map(\.buffer) }).subtracting(keptWrites)
            let refused = foldable.filter { index in
                let node = graph.nodes[index]
                return !node.reads.allSatisfy { graph.buffers[$0.buffer].isConstant || written.contains($0.buffer) }
                    || !node.writes.allSatisfy { written.contains($0.buffer) }
            }
            foldable.subtract(refused)
            isChanging = !refused.isEmpty
        }
        let nodes = foldable.sorted().map { graph.nodes[$0] }
        let results = Set(nodes.flatMap { $0.writes.map(\.buffer) })
        let bytes = results.reduce(0) { $0 + graph.buffers[$1].byteCount }
        let elements = nodes.reduce(0) { $0 + $1.reads.reduce(0) { $0 + $1.count } }
        let isSmall = bytes <= Self.largestFoldedConstant && elements <= Self.largestFoldedWork
        guard !nodes.isEmpty, isSmall || always else { return }
        var writers: [Int: Int] = [:]
        for view in nodes.flatMap(\.writes) { writers[view.buffer, default: 0] += 1 }
        var rest: [Node] = []
        for node in nodes {
            let isWhole = node.writes.allSatisfy { writers[$0.buffer] == 1 }
            let isTaken = isWhole ? try takeFolded(node) : false
            if !isTaken { rest.append(node) }
        }
        try evaluate(rest, writing: Set(rest.flatMap { $0.writes.map(\.buffer) }))
        for index in foldable.sorted(by: >) { graph.nodes.remove(at: index) }
    }

    /// What a value that an operation made of constants only is, as a dense constant.
    func evaluated(_ view: View) throws(RuntimeError) -> View {
        let copy = try dense(view)
        if constantAddress(copy) == nil { try foldConstants(from: operationStart, always: true) }
        return copy
    }

    private static let largestFoldedConstant = 64 << 20
    private static let largestFoldedWork = 1 << 26

    /// Weights that are only converted are converted once for all plans: such a node's result becomes that constant.
    private func takeFolded(_ node: Node) throws(RuntimeError) -> Bool {
        guard case .map(let map) = node.work, map.operands.count == 1,
            case .constant(let address, let owner) = graph.buffers[map.operands[0].buffer].origin,
            map.result.isDense, map.result.offset == 0, map.result.count == graph.buffers[map.result.buffer].count
        else { return false }
        let key = FoldedConstants.Key(map, address: address)
        if let known = folded[key] {
            let bytes = UnsafeRawPointer(known.bytes.baseAddress!)
            graph.buffers[map.result.buffer].origin = .constant(bytes, owner: known)
            return true
        }
        try evaluate([node], writing: [map.result.buffer])
        if case .constant(_, let made as Storage) = graph.buffers[map.result.buffer].origin {
            folded.keep(made, key, owner: owner)
        }
        return true
    }

    private func evaluate(_ nodes: [Node], writing buffers: Set<Int>) throws(RuntimeError) {
        var part = Graph()
        var local: [Int: Int] = [:]
        part.nodes = nodes.map { node in
            node.mappingBuffers { buffer in
                if let known = local[buffer] { return known }
                part.buffers.append(graph.buffers[buffer])
                local[buffer] = part.buffers.count - 1
                return part.buffers.count - 1
            }
        }
        var results: [Int: Storage] = [:]
        for buffer in buffers {
            results[buffer] = try Storage(type: graph.buffers[buffer].type, shape: [graph.buffers[buffer].count])
        }
        var fixed: [Int: UnsafeMutableRawPointer] = [:]
        for (buffer, storage) in results { fixed[local[buffer]!] = storage.bytes.baseAddress! }
        if !nodes.isEmpty, try !Emitter.emit(part, results: fixed, workers: 1).run() { throw .stopped }
        for (buffer, storage) in results {
            let address = UnsafeRawPointer(storage.bytes.baseAddress!)
            graph.buffers[buffer].origin = .constant(address, owner: storage)
        }
    }
}

/// The reductions that the kernels do; all others are made of them.
enum FoldKind {
    case sum, maximum, minimum, product

    func code(for register: ElementType) -> rlxk_fold {
        switch (self, register) {
        case (.sum, .float32): RLXK_SUM
        case (.maximum, .float32): RLXK_MAXIMUM
        case (.minimum, .float32): RLXK_MINIMUM
        case (.product, .float32): RLXK_PRODUCT
        case (.sum, _): RLXK_SUM_I32
        case (.maximum, _): RLXK_MAXIMUM_I32
        case (.minimum, _): RLXK_MINIMUM_I32
        case (.product, _): RLXK_PRODUCT_I32
        }
    }
}
