// Tensors under other shapes: joined, cut, turned, tiled, padded, resized.
import Foundation

@available(macOS 15, iOS 18, *)
extension MLTensor {
    public func reshaped(to newShape: [Int]) -> MLTensor { MLTensor(values, newShape, scalarType) }
    public func flattened() -> MLTensor { reshaped(to: [scalarCount]) }

    public func expandingShape(at axes: Int...) -> MLTensor { expandingShape(at: axes) }

    /// With axes of size one at those places of the new shape.
    public func expandingShape(at axes: [Int]) -> MLTensor {
        let rank = self.rank + axes.count
        let places = axes.map { $0 < 0 ? $0 + rank : $0 }
        precondition(
            Set(places).count == places.count && places.allSatisfy((0..<rank).contains),
            "there are no places \(axes) in shape \(shape)")
        var rest = shape[...]
        return reshaped(to: (0..<rank).map { places.contains($0) ? 1 : rest.removeFirst() })
    }

    /// Without the axes of size one.
    public func squeezingShape() -> MLTensor { reshaped(to: shape.filter { $0 != 1 }) }
    public func squeezingShape(at axes: Int...) -> MLTensor { squeezingShape(at: axes) }

    public func squeezingShape(at axes: [Int]) -> MLTensor {
        let gone = Set(axes.map(axis))
        precondition(gone.allSatisfy { shape[$0] == 1 }, "the axes \(axes) of shape \(shape) are not of size one")
        return reshaped(to: shape.indices.filter { !gone.contains($0) }.map { shape[$0] })
    }

    public func transposed() -> MLTensor { transposed(permutation: Array(shape.indices.reversed())) }
    public func transposed(permutation: Int...) -> MLTensor { transposed(permutation: permutation) }

    public func transposed(permutation: [Int]) -> MLTensor {
        precondition(permutation.sorted() == Array(shape.indices), "\(permutation) does not name each axis once")
        let moved = permutation.map { shape[$0] }
        return MLTensor(read(moved, permutation.map { ownStrides[$0] }), moved, scalarType)
    }

    public func reversed(alongAxes axes: Int...) -> MLTensor { reversed(alongAxes: axes) }

    public func reversed(alongAxes axes: [Int]) -> MLTensor {
        Set(axes.map(axis)).reduce(self) { $0.picking((0..<shape[$1]).reversed(), $1) }
    }

    // MARK: Joining and cutting

    public init(concatenating tensors: some Collection<MLTensor>, alongAxis axis: Int = 0) {
        guard let first = tensors.first else { preconditionFailure("there is nothing to concatenate") }
        let at = first.axis(axis)
        for tensor in tensors {
            precondition(tensor.scalarType == first.scalarType, "the scalar types differ")
            let fits =
                tensor.rank == first.rank
                && first.shape.indices.allSatisfy { $0 == at || first.shape[$0] == tensor.shape[$0] }
            precondition(fits, "the shapes \(first.shape) and \(tensor.shape) differ in more than axis \(axis)")
        }
        let rest = first.shape[(at + 1)...].reduce(1, *)
        var shape = first.shape
        shape[at] = tensors.reduce(0) { $0 + $1.shape[at] }
        let values = (0..<first.shape[..<at].reduce(1, *)).flatMap { row in
            tensors.flatMap { tensor -> ArraySlice<Double> in
                let size = tensor.shape[at] * rest
                return tensor.values[row * size..<(row + 1) * size]
            }
        }
        self.init(values, shape, first.scalarType)
    }

    public init(stacking tensors: some Collection<MLTensor>, alongAxis axis: Int = 0) {
        self.init(concatenating: tensors.map { $0.expandingShape(at: axis) }, alongAxis: axis)
    }

    /// Stacked.
    public init(_ elements: some Collection<MLTensor>, alongAxis axis: Int = 0) {
        self.init(stacking: elements, alongAxis: axis)
    }

    public func concatenated(with other: MLTensor, alongAxis axis: Int = 0) -> MLTensor {
        MLTensor(concatenating: [self, other], alongAxis: axis)
    }

    public func unstacked(alongAxis axis: Int = 0) -> [MLTensor] {
        (0..<shape[self.axis(axis)]).map { picking([$0], axis).squeezingShape(at: axis) }
    }

    /// Parts of equal size.
    public func split(count: Int, alongAxis axis: Int = 0) -> [MLTensor] {
        let size = shape[self.axis(axis)]
        precondition(count > 0 && size % count == 0, "\(size) elements cannot be split into \(count) equal parts")
        return split(sizes: Array(repeating: size / count, count: count), alongAxis: axis)
    }

    public func split(sizes: [Int], alongAxis axis: Int = 0) -> [MLTensor] {
        let size = shape[self.axis(axis)]
        precondition(sizes.reduce(0, +) == size, "the sizes \(sizes) are not \(size) together")
        var start = 0
        return sizes.map { size in
            defer { start += size }
            return picking(start..<start + size, axis)
        }
    }

    /// The slices of an axis at these places, which are there.
    func picking(_ places: some Sequence<Int>, _ axis: Int) -> MLTensor {
        let at = self.axis(axis)
        let places = Array(places)
        let rest = shape[(at + 1)...].reduce(1, *)
        let values = (0..<shape[..<at].reduce(1, *)).flatMap { row in
            places.flatMap { place -> ArraySlice<Double> in
                let start = (row * shape[at] + place) * rest
                return self.values[start..<start + rest]
            }
        }
        var result = shape
        result[at] = places.count
        return MLTensor(values, result, scalarType)
    }

    // MARK: Edges

    public func tiled(multiples: [Int]) -> MLTensor {
        precondition(multiples.count == rank && multiples.allSatisfy { $0 >= 0 }, "\(multiples) do not fit \(shape)")
        return multiples.enumerated().reduce(self) { tensor, multiple in
            let size = shape[multiple.offset]
            return tensor.picking((0..<size * multiple.element).map { $0 % size }, multiple.offset)
        }
    }

    /// Of each matrix the diagonals near the main one; a negative count keeps all on that side.
    public func bandPart(lowerBandCount: Int, upperBandCount: Int) -> MLTensor {
        precondition(rank >= 2, "a band needs matrices, not \(shape)")
        let (rows, columns) = (shape[rank - 2], shape[rank - 1])
        let kept = values.indices.map { index in
            let (row, column) = (index / columns % rows, index % columns)
            let isKept =
                (lowerBandCount < 0 || row - column <= lowerBandCount)
                && (upperBandCount < 0 || column - row <= upperBandCount)
            return isKept ? values[index] : 0
        }
        return MLTensor(kept, shape, scalarType)
    }

    public enum PaddingMode: Hashable, Sendable {
        case constant(Float)
        /// The elements beside the edge, without it.
        case reflection
        /// The elements beside the edge, with it.
        case symmetric
    }

    public func padded(forSizes sizes: [(before: Int, after: Int)], with value: Float) -> MLTensor {
        padded(forSizes: sizes, mode: .constant(value))
    }

    public func padded(forSizes sizes: [(before: Int, after: Int)], mode: PaddingMode) -> MLTensor {
        precondition(
            sizes.count == rank && sizes.allSatisfy { $0.before >= 0 && $0.after >= 0 }, "the sizes do not fit \(shape)"
        )
        return sizes.enumerated().reduce(self) { tensor, padding in
            let (axis, size) = (padding.offset, tensor.shape[padding.offset])
            let (before, after) = padding.element
            guard case .constant(let value) = mode else {
                let step = mode == .reflection ? 1 : 0
                precondition(before <= size - step && after <= size - step, "\(size) elements are too few to reflect")
                let start = (0..<before).map { before - 1 - $0 + step }
                return tensor.picking(start + Array(0..<size) + (0..<after).map { size - 1 - step - $0 }, axis)
            }
            var (left, right) = (tensor.shape, tensor.shape)
            (left[axis], right[axis]) = (before, after)
            let parts = [left, right].map { shape in
                MLTensor(Array(repeating: Double(value), count: Self.count(shape)), shape, scalarType)
            }
            return MLTensor(concatenating: [parts[0], tensor, parts[1]], alongAxis: axis)
        }
    }

    // MARK: Images

    public enum ResizeMethod: Sendable, Hashable {
        case bilinear(alignCorners: Bool = false)
        case nearestNeighbor
    }

    /// Of the last two axes.
    public func resized(
        to size: (newHeight: Int, newWidth: Int), method: ResizeMethod = .nearestNeighbor
    ) -> MLTensor {
        precondition(rank >= 2 && size.newHeight > 0 && size.newWidth > 0, "\(shape) cannot become \(size)")
        return resized(size.newHeight, rank - 2, method).resized(size.newWidth, rank - 1, method)
    }

    private func resized(_ size: Int, _ axis: Int, _ method: ResizeMethod) -> MLTensor {
        let old = shape[axis]
        guard case .bilinear(let alignCorners) = method else {
            return picking((0..<size).map { $0 * old / size }, axis)
        }
        let places = (0..<size).map { index -> Double in
            if alignCorners { return size == 1 ? 0 : Double(index * (old - 1)) / Double(size - 1) }
            return Swift.min(Swift.max((Double(index) + 0.5) * Double(old) / Double(size) - 0.5, 0), Double(old - 1))
        }
        let low = picking(places.map { Int($0) }, axis)
        let high = picking(places.map { Swift.min(Int($0) + 1, old - 1) }, axis)
        var shape = [Int](repeating: 1, count: rank)
        shape[axis] = size
        let share = MLTensor(places.map { $0 - $0.rounded(.down) }, shape, scalarType)
        return low + (high - low) * share
    }
}

@available(macOS 15, iOS 18, *)
extension MLTensor.PaddingMode: CustomStringConvertible {
    public var description: String {
        switch self {
        case .constant(let value): "constant(\(value))"
        case .reflection: "reflection"
        case .symmetric: "symmetric"
        }
    }
}

@available(macOS 15, iOS 18, *)
extension MLTensor.ResizeMethod: CustomStringConvertible {
    public var description: String {
        switch self {
        case .bilinear(let alignCorners): "bilinear(alignCorners: \(alignCorners))"
        case .nearestNeighbor: "nearestNeighbor"
        }
    }
}
