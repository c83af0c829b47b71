// Writes the parts of a value that change into the memory of the input whose place the value takes. Programs write an
// update of a cache as a whole new value, in conversions there and back and copies that change a part.
import RLXKernels

struct PartialUpdates {
    private var graph: Graph
    private let index: GraphIndex
    private let writers: [Int: [Int]]
    private var removed: Set<Int> = []
    /// Nodes to be put before another one.
    private var added: [Int: [Node]] = [:]

    /// `results` names the input instead of each result that became the same buffer.
    static func fuse(_ graph: Graph, results: Set<Int>, inPlace: [Int: Int]) -> (graph: Graph, results: Set<Int>) {
        if inPlace.isEmpty { return (graph, results) }
        var pass = PartialUpdates(graph, results)
        var results = results
        for output in inPlace.keys.sorted() {
            guard let input = inPlace[output], let path = pass.path(from: input, to: output),
                pass.isInOrder(path, results)
            else { continue }
            pass.join(path)
            results.remove(output)
            results.insert(input)
        }
        return (pass.result(), results)
    }

    private init(_ graph: Graph, _ results: Set<Int>) {
        self.graph = graph
        index = GraphIndex(graph, results: results)
        var writers: [Int: [Int]] = [:]
        for (position, node) in graph.nodes.enumerated() {
            for buffer in Set(node.writes.map(\.buffer)) { writers[buffer, default: []].append(position) }
        }
        self.writers = writers
    }

    private func result() -> Graph {
        var result = graph
        result.nodes = graph.nodes.indices.flatMap { position in
            (added[position] ?? []) + (removed.contains(position) ? [] : [graph.nodes[position]])
        }
        return result
    }

    // MARK: Paths

    /// One value of the input's on its way to the output: a copy of all of the value before, then of parts.
    private struct Stage {
        var buffer: Int
        var copy: Int
        var updates: [Int]
    }

    private struct Path {
        var input: Int
        var stages: [Stage]

        var buffers: Set<Int> { Set(stages.map(\.buffer) + [input]) }
    }

    private func path(from input: Int, to output: Int) -> Path? {
        var path = Path(input: input, stages: [])
        var buffer = output
        while buffer != input {
            guard path.stages.count <= graph.nodes.count, let stage = stage(buffer),
                case .map(let copy) = graph.nodes[stage.copy].work, keepsValues(of: input, in: buffer)
            else { return nil }
            path.stages.insert(stage, at: 0)
            buffer = copy.operands[0].buffer
        }
        return path.stages.contains { !$0.updates.isEmpty } ? path : nil
    }

    private func stage(_ buffer: Int) -> Stage? {
        let nodes = writers[buffer] ?? []
        guard let first = nodes.first, let copy = copy(first), index.isWhole(copy.result),
            index.isWhole(copy.operands[0])
        else { return nil }
        let updates = Array(nodes.dropFirst())
        guard updates.allSatisfy({ self.copy($0).map { $0.result.count < copy.result.count } ?? false }) else {
            return nil
        }
        return Stage(buffer: buffer, copy: first, updates: updates)
    }

    private func copy(_ node: Int) -> Map? {
        guard case .map(let map) = graph.nodes[node].work, map.op == RLXK_COPY else { return nil }
        return map
    }

    private func keepsValues(of input: Int, in buffer: Int) -> Bool {
        let (type, other) = (graph.buffers[input].type, graph.buffers[buffer].type)
        return graph.buffers[input].count == graph.buffers[buffer].count
            && (type == other || type == .float16 && other == .float32)
    }

    // MARK: Order

    /// Whether each reader finds, in the one buffer, what it finds now.
    private func isInOrder(_ path: Path, _ results: Set<Int>) -> Bool {
        let own = Set(path.stages.flatMap { [$0.copy] + $0.updates })
        let buffers = path.buffers
        var nextUpdate = graph.nodes.count
        for stage in path.stages.reversed() {
            // What an update gave is rounded to the input's type only later.
            let isWider = graph.buffers[stage.buffer].type != graph.buffers[path.input].type
            let mustBeUnread = isWider && isUnrounded(stage, path)
            for reader in index.readers[stage.buffer] ?? [] where !own.contains(reader) {
                if mustBeUnread || reader > nextUpdate || !canRead(reader, stage.buffer, path.input) { return false }
            }
            if stage.buffer != path.stages.last?.buffer, results.contains(stage.buffer) { return false }
            for update in stage.updates {
                if graph.nodes[update].reads.contains(where: { buffers.contains($0.buffer) }) { return false }
                nextUpdate = min(nextUpdate, update)
            }
        }
        return !results.contains(path.input)
            && (index.readers[path.input] ?? []).allSatisfy { own.contains($0) || $0 < nextUpdate }
    }

    /// Whether a stage holds an update that no stage of the input's type came after.
    private func isUnrounded(_ stage: Stage, _ path: Path) -> Bool {
        var isUnrounded = false
        for other in path.stages {
            if graph.buffers[other.buffer].type == graph.buffers[path.input].type {
                isUnrounded = false
            } else if !other.updates.isEmpty {
                isUnrounded = true
            }
            if other.buffer == stage.buffer { break }
        }
        return isUnrounded
    }

    private func canRead(_ reader: Int, _ buffer: Int, _ input: Int) -> Bool {
        switch graph.nodes[reader].work {
        case .map, .fold, .product: true
        // The arguments were made for the view.
        case .convolution, .kernel: graph.buffers[buffer].type == graph.buffers[input].type
        }
    }

    // MARK: Rewriting

    private mutating func join(_ path: Path) {
        let type = graph.buffers[path.input].type
        let buffers = path.buffers
        func moved(_ view: View) -> View {
            guard buffers.contains(view.buffer) else { return view }
            var view = view
            view.buffer = path.input
            view.type = type
            return view
        }
        for stage in path.stages {
            removed.insert(stage.copy)
            for update in stage.updates { graph.nodes[update] = graph.nodes[update].mappingViews(moved) }
            for reader in index.readers[stage.buffer] ?? [] where !removed.contains(reader) {
                if case .product(var product) = graph.nodes[reader].work {
                    product.a = converted(moved(product.a), before: reader)
                    product.b = converted(moved(product.b), before: reader)
                    if let bias = product.bias { product.bias = converted(moved(bias), before: reader) }
                    if let gate = product.gate { product.gate = converted(moved(gate), before: reader) }
                    graph.nodes[reader].work = .product(product)
                } else {
                    graph.nodes[reader] = graph.nodes[reader].mappingViews(moved)
                }
            }
        }
    }

    /// A product's operand in f32: only what it reads, in the order in which it lies in memory.
    private mutating func converted(_ view: View, before reader: Int) -> View {
        if view.type == .float32 { return view }
        var once = view
        for axis in view.shape.indices where view.strides[axis] == 0 { once.shape[axis] = 1 }
        let order = view.shape.indices.sorted { abs(view.strides[$0]) > abs(view.strides[$1]) }
        let source = once.transposed(order)
        let buffer = graph.addBuffer(.float32, count: source.count)
        let target = View(buffer: buffer, type: .float32, shape: source.shape)
        let copy = Map(op: RLXK_COPY, operands: [source], result: target)
        added[reader, default: []].append(Node(work: .map(copy), place: graph.nodes[reader].place))
        var back = order
        for (position, axis) in order.enumerated() { back[axis] = position }
        return target.transposed(back).broadcast(to: view.shape)
    }
}
