// Parts of tensors: by indices in other tensors, and by subscripts with ranges.
import Foundation

@available(macOS 15, iOS 18, *)
extension MLTensor {
    /// The slices at one axis that the indices name; negative ones count from the end.
    public func gathering(atIndices indices: MLTensor, alongAxis axis: Int) -> MLTensor {
        let at = self.axis(axis)
        let picked = picking(indices.places(in: shape[at]), at)
        return picked.reshaped(to: shape[..<at] + indices.shape + shape[(at + 1)...])
    }

    /// The parts that the rows of the indices name, as coordinates of the first axes.
    public func gathering(atIndices indices: MLTensor) -> MLTensor {
        guard let depth = indices.shape.last, depth <= rank else {
            preconditionFailure("indices of shape \(indices.shape) do not fit \(shape)")
        }
        let size = shape[depth...].reduce(1, *)
        let rows = indices.shape.dropLast().reduce(1, *)
        let gathered = (0..<rows).flatMap { row -> ArraySlice<Double> in
            let start = (0..<depth).reduce(0) { start, axis in
                start + Self.place(indices.values[row * depth + axis], shape[axis]) * ownStrides[axis]
            }
            return values[start..<start + size]
        }
        return MLTensor(gathered, indices.shape.dropLast() + shape[depth...], scalarType)
    }

    public func replacing(
        atIndices indices: MLTensor, with replacement: some MLTensorScalar, alongAxis axis: Int
    ) -> MLTensor {
        let part = gathering(atIndices: indices, alongAxis: axis)
        let filled = MLTensor(
            Array(repeating: like(replacement).values[0], count: part.scalarCount), part.shape, scalarType)
        return replacing(with: filled, atIndices: indices, alongAxis: axis)
    }

    /// The replacement has the shape that gathering at the indices gives.
    public func replacing(with replacement: MLTensor, atIndices indices: MLTensor, alongAxis axis: Int) -> MLTensor {
        let at = self.axis(axis)
        let places = indices.places(in: shape[at])
        let rest = shape[(at + 1)...].reduce(1, *)
        let rows = shape[..<at].reduce(1, *)
        precondition(
            replacement.scalarType == scalarType && replacement.scalarCount == rows * places.count * rest,
            "the replacement \(replacement) does not fit")
        var result = values
        for row in 0..<rows {
            for (index, place) in places.enumerated() {
                let (to, from) = ((row * shape[at] + place) * rest, (row * places.count + index) * rest)
                result.replaceSubrange(to..<to + rest, with: replacement.values[from..<from + rest])
            }
        }
        return MLTensor(result, shape, scalarType)
    }

    private func places(in size: Int) -> [Int] { values.map { Self.place($0, size) } }

    private static func place(_ index: Double, _ size: Int) -> Int {
        let own = Int(index) < 0 ? Int(index) + size : Int(index)
        precondition((0..<size).contains(own), "index \(Int(index)) is not in \(size) slices")
        return own
    }

    // MARK: Subscripts

    public subscript(ranges: (any MLTensorRangeExpression)?...) -> MLTensor { part(ranges) }

    public subscript(
        firstRange: (UnboundedRange_) -> Void, trailingRanges: (any MLTensorRangeExpression)?...
    ) -> MLTensor {
        part([_MLTensorRange(.all)] + trailingRanges)
    }

    public subscript(
        firstRange: (any MLTensorRangeExpression)?, secondRange: (UnboundedRange_) -> Void,
        trailingRanges: (any MLTensorRangeExpression)?...
    ) -> MLTensor {
        part([firstRange, _MLTensorRange(.all)] + trailingRanges)
    }

    public subscript(
        firstRange: (any MLTensorRangeExpression)?, secondRange: (any MLTensorRangeExpression)?,
        thirdRange: (UnboundedRange_) -> Void, trailingRanges: (any MLTensorRangeExpression)?...
    ) -> MLTensor {
        part([firstRange, secondRange, _MLTensorRange(.all)] + trailingRanges)
    }

    public subscript(
        firstRange: (any MLTensorRangeExpression)?, secondRange: (any MLTensorRangeExpression)?,
        thirdRange: (any MLTensorRangeExpression)?, fourthRange: (UnboundedRange_) -> Void,
        trailingRanges: (any MLTensorRangeExpression)?...
    ) -> MLTensor {
        part([firstRange, secondRange, thirdRange, _MLTensorRange(.all)] + trailingRanges)
    }

    /// Nil is a new axis; the first range that fills stands for all axes that no other one names.
    private func part(_ expressions: [(any MLTensorRangeExpression)?]) -> MLTensor {
        let ranges = expressions.map { $0?._mlTensorRange.kind ?? .newAxis }
        let named = ranges.count { $0 != .newAxis && $0 != .all }
        precondition(named <= rank, "there are \(named) ranges for the shape \(shape)")
        var free = rank - named
        var result = self
        var at = 0
        for range in ranges {
            switch range {
            case .newAxis:
                result = result.expandingShape(at: at)
                at += 1
            case .all: (at, free) = (at + free, 0)
            case .squeezeAxis: result = result.squeezingShape(at: at)
            case .index(let index):
                let place = Self.place(Double(index), result.shape[at])
                result = result.picking([place], at).squeezingShape(at: at)
            case .range(let lower, let upper, let stride):
                result = result.picking(Self.places(lower, upper, stride, result.shape[at]), at)
                at += 1
            }
        }
        return result
    }

    private static func places(_ lower: Int?, _ upper: Int?, _ stride: Int, _ size: Int) -> StrideTo<Int> {
        precondition(stride > 0, "a stride of \(stride) is not possible")
        let start = lower.map { $0 < 0 ? $0 + size : $0 } ?? 0
        let end = upper.map { $0 < 0 ? $0 + size : $0 } ?? size
        return Swift.stride(from: Swift.max(start, 0), to: Swift.min(end, size), by: stride)
    }
}

/// What may stand for a part of an axis.
@available(macOS 15, iOS 18, *)
public protocol MLTensorRangeExpression: Sendable {
    var _mlTensorRange: _MLTensorRange { get }
}

@available(macOS 15, iOS 18, *)
public struct _MLTensorRange: MLTensorRangeExpression {
    enum Kind: Hashable, Sendable {
        case all, newAxis, squeezeAxis
        case index(Int)
        case range(Int?, Int?, stride: Int)
    }

    let kind: Kind

    init(_ kind: Kind) { self.kind = kind }

    public var _mlTensorRange: _MLTensorRange { self }
}

@available(macOS 15, iOS 18, *)
extension Int: MLTensorRangeExpression {
    public var _mlTensorRange: _MLTensorRange { .init(.index(self)) }
}

@available(macOS 15, iOS 18, *)
extension Range: MLTensorRangeExpression where Bound == Int {
    public var _mlTensorRange: _MLTensorRange { .init(.range(lowerBound, upperBound, stride: 1)) }
}

@available(macOS 15, iOS 18, *)
extension ClosedRange: MLTensorRangeExpression where Bound == Int {
    public var _mlTensorRange: _MLTensorRange { .init(.range(lowerBound, .after(upperBound), stride: 1)) }
}

@available(macOS 15, iOS 18, *)
extension PartialRangeFrom: MLTensorRangeExpression where Bound == Int {
    public var _mlTensorRange: _MLTensorRange { .init(.range(lowerBound, nil, stride: 1)) }
}

@available(macOS 15, iOS 18, *)
extension PartialRangeUpTo: MLTensorRangeExpression where Bound == Int {
    public var _mlTensorRange: _MLTensorRange { .init(.range(nil, upperBound, stride: 1)) }
}

@available(macOS 15, iOS 18, *)
extension PartialRangeThrough: MLTensorRangeExpression where Bound == Int {
    public var _mlTensorRange: _MLTensorRange { .init(.range(nil, .after(upperBound), stride: 1)) }
}

@available(macOS 15, iOS 18, *)
extension MLTensorRangeExpression where Self == _MLTensorRange {
    public static var fillAll: any MLTensorRangeExpression { _MLTensorRange(.all) }
    public static var newAxis: any MLTensorRangeExpression { _MLTensorRange(.newAxis) }
    public static var squeezeAxis: any MLTensorRangeExpression { _MLTensorRange(.squeezeAxis) }

    public static func index(_ index: Int) -> any MLTensorRangeExpression { index }

    public static func range(_ range: Range<Int>, stride: Int = 1) -> any MLTensorRangeExpression {
        _MLTensorRange(.range(range.lowerBound, range.upperBound, stride: stride))
    }

    public static func closedRange(_ range: ClosedRange<Int>, stride: Int = 1) -> any MLTensorRangeExpression {
        _MLTensorRange(.range(range.lowerBound, .after(range.upperBound), stride: stride))
    }

    public static func partialRangeFrom(
        _ range: PartialRangeFrom<Int>, stride: Int = 1
    ) -> any MLTensorRangeExpression {
        _MLTensorRange(.range(range.lowerBound, nil, stride: stride))
    }

    public static func partialRangeUpTo(
        _ range: PartialRangeUpTo<Int>, stride: Int = 1
    ) -> any MLTensorRangeExpression {
        _MLTensorRange(.range(nil, range.upperBound, stride: stride))
    }

    public static func partialRangeUpTo(
        _ range: PartialRangeThrough<Int>, stride: Int = 1
    ) -> any MLTensorRangeExpression {
        _MLTensorRange(.range(nil, .after(range.upperBound), stride: stride))
    }
}

extension Int? {
    /// The end of a range through an index; nothing follows the last one from the end.
    fileprivate static func after(_ index: Int) -> Int? { index == -1 ? nil : index + 1 }
}
