// Who writes and who reads each buffer of a graph: what rewrites look patterns up in.
import RLXKernels

struct GraphIndex {
    private let graph: Graph
    /// The nodes, nil where a rewrite took one away.
    var nodes: [Node?]
    /// For buffers that exactly one node writes: that node.
    var writer: [Int: Int] = [:]
    private(set) var readers: [Int: [Int]] = [:]
    /// Buffers whose values are wanted outside.
    private let results: Set<Int>

    init(_ graph: Graph, results: Set<Int>) {
        self.graph = graph
        self.results = results
        nodes = graph.nodes
        var written: Set<Int> = []
        for (index, node) in graph.nodes.enumerated() {
            for buffer in Set(node.reads.map(\.buffer)) { readers[buffer, default: []].append(index) }
            for view in node.writes {
                writer[view.buffer] = written.insert(view.buffer).inserted ? index : nil
            }
        }
    }

    func map(_ index: Int?) -> Map? {
        guard let index, case .map(let map)? = nodes[index]?.work else { return nil }
        return map
    }

    /// The map that makes all of `view`, just as it lies.
    func map(making view: View) -> Map? {
        guard isWhole(view), let map = map(writer[view.buffer]), isWhole(map.result) else { return nil }
        return map
    }

    /// Whether the view goes over its whole buffer in order.
    func isWhole(_ view: View) -> Bool {
        view.isDense && view.offset == 0 && view.count == graph.buffers[view.buffer].count
    }

    func isOnlyRead(by reader: Int, _ buffer: Int) -> Bool {
        readers[buffer] == [reader] && !results.contains(buffer)
    }

    mutating func redirect(reader: Int, from old: Int, to new: Int) {
        readers[old]?.removeAll { $0 == reader }
        readers[new, default: []].append(reader)
    }

    func placement(_ buffer: Int) -> Placement? { graph.placements[buffer] }

    /// The value that the view has everywhere, if that is known.
    func constant(_ view: View) -> Double? {
        guard case .constant(let address, _) = graph.buffers[view.buffer].origin,
            zip(view.shape, view.strides).allSatisfy({ $0 == 1 || $1 == 0 }), !view.shape.contains(0)
        else { return nil }
        return numbers(in: View(buffer: 0, type: view.type, shape: [], offset: view.offset), at: address)[0]
    }
}
