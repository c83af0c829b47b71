// Moves elementwise work that follows a product or a convolution into it, where the values are still in registers: the
// addition of a bias, relu, and (into products) the mask of relu's derivative.
import RLXKernels

struct Epilogues {
    private var graph: Graph
    private var nodes: [Node?]
    /// For buffers that exactly one node writes: that node.
    private var writer: [Int: Int] = [:]
    private var readers: [Int: [Int]] = [:]
    /// Buffers whose values are wanted outside.
    private let results: Set<Int>

    static func fuse(_ graph: Graph, results: Set<Int>) -> Graph {
        var pass = Epilogues(graph, results)
        pass.masksFromResults()
        pass.fuseMaps()
        var fused = graph
        fused.nodes = pass.nodes.compactMap(\.self)
        return fused
    }

    private init(_ graph: Graph, _ results: Set<Int>) {
        self.graph = graph
        self.results = results
        nodes = graph.nodes
        var written: Set<Int> = []
        for (index, node) in graph.nodes.enumerated() {
            for view in node.reads { readers[view.buffer, default: []].append(index) }
            for view in node.writes {
                writer[view.buffer] = written.insert(view.buffer).inserted ? index : nil
            }
        }
    }

    private func map(_ index: Int?) -> Map? {
        guard let index, case .map(let map)? = nodes[index]?.work else { return nil }
        return map
    }

    /// relu(z) > 0 where z > 0: with the mask made from the result, z itself need not be kept.
    private mutating func masksFromResults() {
        var reluOf: [View: View] = [:]
        for index in nodes.indices {
            guard var map = map(index) else { continue }
            if map.op == RLXK_RELU, map.result.isDense { reluOf[map.operands[0]] = map.result }
            if map.op == RLXK_GT, isZero(map.operands[1]), let result = reluOf[map.operands[0]],
                result.shape == map.operands[0].shape
            {
                readers[map.operands[0].buffer]!.removeAll { $0 == index }
                readers[result.buffer, default: []].append(index)
                map.operands[0] = result
                nodes[index]!.work = .map(map)
            }
        }
    }

    private func isZero(_ view: View) -> Bool {
        guard case .constant(let address, _) = graph.buffers[view.buffer].origin,
            view.strides.allSatisfy({ $0 == 0 }), !view.shape.contains(0)
        else { return false }
        return numbers(in: View(buffer: 0, type: view.type, shape: [], offset: view.offset), at: address) == [0]
    }

    private mutating func fuseMaps() {
        for index in nodes.indices {
            guard let map = map(index), map.result.type == .float32, map.result.isDense, map.result.offset == 0 else {
                continue
            }
            for side in map.operands.indices {
                guard let source = producer(of: map.operands[side], only: index),
                    let fused = fused(nodes[source]!.work, map, side)
                else { continue }
                // What else the map reads may have been made after the product: the product takes the map's place.
                nodes[index]!.work = fused
                nodes[source] = nil
                writer[map.result.buffer] = index
                break
            }
        }
    }

    /// The node that makes all of `view`, if only the node `reader` wants it.
    private func producer(of view: View, only reader: Int) -> Int? {
        guard view.isDense, view.offset == 0, view.count == graph.buffers[view.buffer].count,
            !results.contains(view.buffer), readers[view.buffer] == [reader], let index = writer[view.buffer]
        else { return nil }
        return index
    }

    private func fused(_ work: Node.Work, _ map: Map, _ side: Int) -> Node.Work? {
        let other = map.operands.count == 2 ? map.operands[1 - side] : nil
        switch work {
        case .product(var product):
            guard product.gate == nil, map.result.count == product.c.count else { return nil }
            product.c.buffer = map.result.buffer
            switch map.op {
            case RLXK_RELU: product.relu = true
            case RLXK_ADD:
                guard !product.relu, product.bias == nil, let bias = vector(other!, product.c.shape, along: -1) else {
                    return nil
                }
                product.bias = bias
            case RLXK_MUL:
                guard let gate = gate(other!, product.c) else { return nil }
                product.gate = gate
            default: return nil
            }
            return .product(product)
        case .convolution(var convolution):
            guard convolution.kind == .forward, map.result.count == convolution.result.count else { return nil }
            let shape = convolution.result.shape
            convolution.result.buffer = map.result.buffer
            switch map.op {
            case RLXK_RELU: convolution.relu = true
            case RLXK_ADD:
                guard !convolution.relu, convolution.bias == nil, let bias = vector(other!, shape, along: 1) else {
                    return nil
                }
                convolution.bias = bias
            default: return nil
            }
            return .convolution(convolution)
        default: return nil
        }
    }

    /// The values that `view` has along one axis of `shape` (-1 the last) and repeats along all others, if that is what
    /// it does.
    private func vector(_ view: View, _ shape: [Int], along axis: Int) -> View? {
        let axis = axis < 0 ? shape.count + axis : axis
        guard view.type == .float32, view.shape == shape,
            shape.indices.allSatisfy({ shape[$0] == 1 || view.strides[$0] == ($0 == axis ? 1 : 0) })
        else { return nil }
        return View(buffer: view.buffer, type: view.type, shape: [shape[axis]], offset: view.offset)
    }

    /// The values whose sign makes the mask `view`, if it is one and they lie as `c` does.
    private func gate(_ view: View, _ c: View) -> View? {
        guard view.isDense, let cast = map(writer[view.buffer]), cast.op == RLXK_I32_TO_F32,
            cast.result.isDense, cast.result.count == view.count, cast.operands[0].type == .bool,
            let comparison = map(writer[cast.operands[0].buffer]), comparison.op == RLXK_GT,
            comparison.result.isDense, cast.operands[0].isDense, comparison.result.count == view.count,
            isZero(comparison.operands[1])
        else { return nil }
        let source = comparison.operands[0]
        guard source.type == .float32, source.isDense, source.count == c.count else { return nil }
        return source.reshaped(c.shape)
    }
}
