// Moves elementwise work that follows a matrix product into the product, where the values are still in registers: the
// addition of a bias, relu, and the mask of relu's derivative.
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
                guard let source = product(feeding: map.operands[side], as: map.result, only: index),
                    let fused = fused(source.product, map, side)
                else { continue }
                // What else the map reads may have been made after the product: the product takes the map's place.
                var node = nodes[source.index]!
                node.work = .product(fused)
                nodes[source.index] = nil
                nodes[index] = node
                writer[map.result.buffer] = index
                break
            }
        }
    }

    /// The product that makes all of `view`, if only the node `reader` wants it and it can be laid out as `target`.
    private func product(feeding view: View, as target: View, only reader: Int) -> (product: Product, index: Int)? {
        guard view.isDense, view.shape == target.shape, !results.contains(view.buffer),
            readers[view.buffer] == [reader], let index = writer[view.buffer],
            case .product(let product)? = nodes[index]?.work,
            product.c.isDense, product.c.count == view.count, view.offset == product.c.offset
        else { return nil }
        return (product, index)
    }

    private func fused(_ product: Product, _ map: Map, _ side: Int) -> Product? {
        var result = product
        result.c.buffer = map.result.buffer
        result.c.offset = map.result.offset
        guard product.gate == nil else { return nil }
        switch map.op {
        case RLXK_ADD:
            let other = map.operands[1 - side]
            guard !product.relu, product.bias == nil, other.type == .float32, let columns = product.c.shape.last,
                let bias = vector(other, columns)
            else { return nil }
            result.bias = bias
        case RLXK_RELU:
            result.relu = true
        case RLXK_MUL:
            guard let gate = gate(map.operands[1 - side], product.c) else { return nil }
            result.gate = gate
        default:
            return nil
        }
        return result
    }

    /// The `columns` values that `view` repeats for every row, if that is what it does.
    private func vector(_ view: View, _ columns: Int) -> View? {
        guard view.shape.last == columns, view.strides.last == 1 || columns == 1,
            zip(view.shape, view.strides).dropLast().allSatisfy({ $0 == 1 || $1 == 0 })
        else { return nil }
        return View(buffer: view.buffer, type: view.type, shape: [columns], offset: view.offset)
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
