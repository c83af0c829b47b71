// Moves elementwise work that follows a product or a convolution into it, where the values are still in registers: the
// addition of a bias, relu and clip, and (into products) the mask of relu's derivative.
import RLXKernels

struct Epilogues {
    private var index: GraphIndex

    static func fuse(_ graph: Graph, results: Set<Int>) -> Graph {
        var pass = Epilogues(index: GraphIndex(graph, results: results))
        pass.masksFromResults()
        pass.fuseMaps()
        var fused = graph
        fused.nodes = pass.index.nodes.compactMap(\.self)
        return fused
    }

    /// relu(z) > 0 where z > 0: with the mask made from the result, z itself need not be kept.
    private mutating func masksFromResults() {
        var reluOf: [View: View] = [:]
        for node in index.nodes.indices {
            guard var map = index.map(node) else { continue }
            if map.op == RLXK_RELU, map.result.isDense { reluOf[map.operands[0]] = map.result }
            if map.op == RLXK_GT, index.constant(map.operands[1]) == 0, let result = reluOf[map.operands[0]],
                result.shape == map.operands[0].shape
            {
                index.redirect(reader: node, from: map.operands[0].buffer, to: result.buffer)
                map.operands[0] = result
                index.nodes[node]!.work = .map(map)
            }
        }
    }

    private mutating func fuseMaps() {
        for node in index.nodes.indices {
            guard let map = index.map(node), map.result.type == .float32, index.isWhole(map.result) else { continue }
            for side in map.operands.indices {
                guard !isMetTwice(map, side), let source = producer(of: map.operands[side], only: node),
                    let fused = fused(index.nodes[source]!.work, map, side)
                else { continue }
                // What else the map reads may have been made after the product: the product takes the map's place.
                index.nodes[node]!.work = fused
                index.nodes[source] = nil
                index.writer[map.result.buffer] = node
                break
            }
        }
    }

    /// Whether another operand reads the same memory: once the work is fused, nothing is stored there.
    private func isMetTwice(_ map: Map, _ side: Int) -> Bool {
        map.operands.indices.contains { $0 != side && map.operands[$0].buffer == map.operands[side].buffer }
    }

    /// The node that makes all of `view`, if only the node `reader` wants it.
    private func producer(of view: View, only reader: Int) -> Int? {
        guard index.isWhole(view), index.isOnlyRead(by: reader, view.buffer) else { return nil }
        return index.writer[view.buffer]
    }

    private func fused(_ work: Node.Work, _ map: Map, _ side: Int) -> Node.Work? {
        let other = map.operands.count == 2 ? map.operands[1 - side] : nil
        switch work {
        case .product(var product):
            guard product.gate == nil, map.result.count == product.c.count else { return nil }
            product.c.buffer = map.result.buffer
            switch map.op {
            case RLXK_RELU, RLXK_CLIP:
                guard let activation = activation(map, after: product.activation) else { return nil }
                product.activation = activation
            case RLXK_ADD:
                guard product.activation == .none, product.bias == nil,
                    let bias = vector(other!, product.c.shape, along: -1)
                else { return nil }
                product.bias = bias
            case RLXK_MUL:
                guard let gate = gate(other!, product.c) else { return nil }
                product.gate = gate
            default: return nil
            }
            return .product(product)
        case .convolution(var convolution):
            guard convolution.kind != .weightGradient, map.result.count == convolution.result.count else { return nil }
            let shape = convolution.result.shape
            convolution.result.buffer = map.result.buffer
            switch map.op {
            case RLXK_RELU, RLXK_CLIP:
                guard let activation = activation(map, after: convolution.activation) else { return nil }
                convolution.activation = activation
            case RLXK_ADD:
                guard convolution.activation == .none, convolution.bias == nil,
                    let bias = vector(other!, shape, along: 1)
                else { return nil }
                convolution.bias = bias
            default: return nil
            }
            return .convolution(convolution)
        default: return nil
        }
    }

    private func activation(_ map: Map, after before: Activation) -> Activation? {
        if map.op == RLXK_RELU { return before == .none || before == .relu ? .relu : nil }
        return before == .none ? .clip(map.p, map.q) : nil
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
        guard let cast = index.map(making: view), cast.op == RLXK_I32_TO_F32, cast.operands[0].type == .bool,
            let comparison = index.map(making: cast.operands[0]), comparison.op == RLXK_GT,
            index.constant(comparison.operands[1]) == 0
        else { return nil }
        let source = comparison.operands[0]
        guard source.type == .float32, source.isDense, source.count == c.count else { return nil }
        return source.reshaped(c.shape)
    }
}
