// Many elements of a tensor made one, or put in order: reductions, products, running totals, sorting.
import Foundation

@available(macOS 15, iOS 18, *)
extension MLTensor {
    public func sum(keepRank: Bool = false) -> MLTensor { sum(alongAxes: Array(shape.indices), keepRank: keepRank) }
    public func sum(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        sum(alongAxes: axes, keepRank: keepRank)
    }
    public func sum(alongAxes axes: [Int], keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(0, +) }
    }

    public func mean(keepRank: Bool = false) -> MLTensor { mean(alongAxes: Array(shape.indices), keepRank: keepRank) }
    public func mean(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        mean(alongAxes: axes, keepRank: keepRank)
    }
    public func mean(alongAxes axes: [Int], keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(0, +) / Double($0.count) }
    }

    public func min(keepRank: Bool = false) -> MLTensor { min(alongAxes: Array(shape.indices), keepRank: keepRank) }
    public func min(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        min(alongAxes: axes, keepRank: keepRank)
    }
    public func min(alongAxes axes: [Int], keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(.infinity) { $0.isNaN || $1.isNaN ? .nan : Swift.min($0, $1) } }
    }

    public func max(keepRank: Bool = false) -> MLTensor { max(alongAxes: Array(shape.indices), keepRank: keepRank) }
    public func max(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        max(alongAxes: axes, keepRank: keepRank)
    }
    public func max(alongAxes axes: [Int], keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(-.infinity) { $0.isNaN || $1.isNaN ? .nan : Swift.max($0, $1) } }
    }

    public func product(keepRank: Bool = false) -> MLTensor {
        product(alongAxes: Array(shape.indices), keepRank: keepRank)
    }
    public func product(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        product(alongAxes: axes, keepRank: keepRank)
    }
    public func product(alongAxes axes: [Int], keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(1, *) }
    }

    public func all(keepRank: Bool = false) -> MLTensor { all(alongAxes: Array(shape.indices), keepRank: keepRank) }
    public func all(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        all(alongAxes: axes, keepRank: keepRank)
    }
    public func all(alongAxes axes: [Int], keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank, Bool.self) { $0.allSatisfy { $0 != 0 } ? 1 : 0 }
    }

    public func any(keepRank: Bool = false) -> MLTensor { any(alongAxes: Array(shape.indices), keepRank: keepRank) }
    public func any(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        any(alongAxes: axes, keepRank: keepRank)
    }
    public func any(alongAxes axes: [Int], keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank, Bool.self) { $0.contains { $0 != 0 } ? 1 : 0 }
    }

    /// The index in C order of the largest element; the first one of equals.
    public func argmax() -> MLTensor { flattened().argmax(alongAxis: 0) }
    public func argmax(alongAxis axis: Int, keepRank: Bool = false) -> MLTensor { best(axis, keepRank, >) }

    /// The index in C order of the smallest element; the first one of equals.
    public func argmin() -> MLTensor { flattened().argmin(alongAxis: 0) }
    public func argmin(alongAxis axis: Int, keepRank: Bool = false) -> MLTensor { best(axis, keepRank, <) }

    private func best(_ axis: Int, _ keepRank: Bool, _ isBetter: (Double, Double) -> Bool) -> MLTensor {
        reduced([axis], keepRank, Int32.self) { row in
            Double(row.indices.dropFirst().reduce(0) { isBetter(row[$1], row[$0]) ? $1 : $0 })
        }
    }

    private func reduced(
        _ axes: [Int], _ keepRank: Bool, _ type: (any MLTensorScalar.Type)? = nil, _ body: ([Double]) -> Double
    ) -> MLTensor {
        let gone = Set(axes.map(axis)).sorted()
        let kept = shape.indices.filter { !gone.contains($0) }
        let moved = transposed(permutation: kept + gone)
        let size = gone.reduce(1) { $0 * shape[$1] }
        let rows = kept.reduce(1) { $0 * shape[$1] }
        let results = (0..<rows).map { body(Array(moved.values[$0 * size..<($0 + 1) * size])) }
        let result = keepRank ? shape.indices.map { gone.contains($0) ? 1 : shape[$0] } : kept.map { shape[$0] }
        return MLTensor(results, result, type ?? scalarType)
    }

    // MARK: Products

    /// Of the last two axes; the ones before broadcast. A vector on the left is a row, one on the right a column.
    public func matmul(_ other: MLTensor) -> MLTensor {
        precondition(rank >= 1 && other.rank >= 1, "matmul needs axes, not \(shape) and \(other.shape)")
        let (left, right) = (
            rank == 1 ? expandingShape(at: 0) : self, other.rank == 1 ? other.expandingShape(at: 1) : other
        )
        let inner = left.shape[left.rank - 1]
        precondition(right.shape[right.rank - 2] == inner, "\(shape) and \(other.shape) cannot be multiplied")
        var product = (left.expandingShape(at: left.rank) * right.expandingShape(at: right.rank - 2)).sum(alongAxes: -2)
        if rank == 1 { product = product.squeezingShape(at: product.rank - 2) }
        return other.rank == 1 ? product.squeezingShape(at: product.rank - 1) : product
    }

    public func softmax(alongAxis axis: Int = -1) -> MLTensor {
        let exponential = (self - max(alongAxes: axis, keepRank: true)).exp()
        return exponential / exponential.sum(alongAxes: axis, keepRank: true)
    }

    // MARK: Order

    public func cumulativeSum(alongAxis axis: Int = 0) -> MLTensor { running(axis, 0, +) }
    public func cumulativeProduct(alongAxis axis: Int = 0) -> MLTensor { running(axis, 1, *) }

    private func running(_ axis: Int, _ start: Double, _ combine: (Double, Double) -> Double) -> MLTensor {
        alongRows(axis) { row in
            var total = start
            return row.map { value in
                total = combine(total, value)
                return total
            }
        }
    }

    /// The places of the elements from the smallest on; equals stay in order.
    public func argsort(alongAxis axis: Int = -1, descendingOrder: Bool = false) -> MLTensor {
        alongRows(axis, Int32.self) { row in
            row.indices.sorted { descendingOrder ? row[$0] > row[$1] : row[$0] < row[$1] }.map(Double.init)
        }
    }

    /// Of the last axis, largest first.
    public func topK(_ k: Int) -> (values: MLTensor, indices: MLTensor) {
        precondition((0...shape[axis(-1)]).contains(k), "there are \(shape[axis(-1)]) elements, not \(k)")
        let order = argsort(descendingOrder: true)
        let sorted = alongRows(-1) { row in row.indices.sorted { row[$0] > row[$1] }.map { row[$0] } }
        let first = MLTensor((0..<k).map { Int32($0) })
        return (sorted.gathering(atIndices: first, alongAxis: -1), order.gathering(atIndices: first, alongAxis: -1))
    }

    private func alongRows(
        _ axis: Int, _ type: (any MLTensorScalar.Type)? = nil, _ body: ([Double]) -> [Double]
    ) -> MLTensor {
        let at = self.axis(axis)
        let order = shape.indices.filter { $0 != at } + [at]
        let moved = transposed(permutation: order)
        let size = shape[at]
        let rows = size == 0 ? 0 : values.count / size
        let results = (0..<rows).flatMap { body(Array(moved.values[$0 * size..<($0 + 1) * size])) }
        let back = shape.indices.map { axis in order.firstIndex(of: axis) ?? axis }
        return MLTensor(results, moved.shape, type ?? scalarType).transposed(permutation: back)
    }
}
