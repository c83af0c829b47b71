// The same scalars under other shapes.

@available(macOS 15, iOS 18, *)
extension MLShapedArray {
    public func reshaped(to shape: [Int]) -> MLShapedArray { MLShapedArray(scalars: scalars, shape: shape) }

    /// Without the axes of size one.
    public func squeezingShape() -> MLShapedArray { reshaped(to: shape.filter { $0 != 1 }) }

    /// With an axis of size one at that place.
    public func expandingShape(at axis: Int) -> MLShapedArray {
        precondition((0...shape.count).contains(axis), "there is no place \(axis) in shape \(shape)")
        var shape = shape
        shape.insert(1, at: axis)
        return reshaped(to: shape)
    }

    /// With the axes in reverse order.
    public func transposed() -> MLShapedArray { transposed(permutation: Array(shape.indices.reversed())) }

    /// With axis `permutation[i]` as axis `i`.
    public func transposed(permutation: [Int]) -> MLShapedArray {
        precondition(permutation.sorted() == Array(shape.indices), "\(permutation) does not name each axis once")
        guard let layout = ArrayLayout(shape: permutation.map { shape[$0] }, strides: permutation.map { strides[$0] })
        else { preconditionFailure("shape \(shape) is not possible") }
        let moved = (0..<layout.count).map { scalars[layout.offset(linear: $0)] }
        return MLShapedArray(scalars: moved, shape: layout.shape)
    }
}
