// Finds products that are symmetric matrices, of which half is enough to compute. Knows nothing of kernels.

enum Symmetry {
    /// Below this, the other half costs more to copy than to compute.
    private static let smallestSize = 128

    /// Marks X Xᵀ, and products of such a matrix with itself: elements i, j and j, i are sums of the same products in
    /// the same order.
    static func mark(_ graph: Graph, results: Set<Int>) -> Graph {
        let index = GraphIndex(graph, results: results)
        var symmetric: Set<Int> = []
        var marked = graph
        for (position, node) in graph.nodes.enumerated() {
            guard case .product(var product) = node.work, isPlain(product),
                index.writer[product.c.buffer] == position, index.isWhole(product.c),
                product.b == product.a.swappingLastAxes
                    || product.a.buffer == product.b.buffer && symmetric.contains(product.a.buffer)
                        && [product.a, product.b].allSatisfy({ isWholeEitherWay($0, index) })
            else { continue }
            product.isSymmetric = true
            marked.nodes[position].work = .product(product)
            symmetric.insert(product.c.buffer)
        }
        return marked
    }

    private static func isPlain(_ product: Product) -> Bool {
        let sizes = product.c.shape.suffix(2)
        return product.bias == nil && product.gate == nil && sizes.first == sizes.last
            && product.c.shape.last! >= smallestSize && product.c.shape.dropLast(2).allSatisfy { $0 == 1 }
    }

    private static func isWholeEitherWay(_ view: View, _ index: GraphIndex) -> Bool {
        index.isWhole(view) || index.isWhole(view.swappingLastAxes)
    }
}
