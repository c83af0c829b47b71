// What tensors can be put through: elementwise operations with broadcasting, products, reductions, new shapes.
import Foundation

@available(macOS 15, iOS 18, *)
extension MLTensor: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral
{
    public init(floatLiteral value: Float) { self.init([Double(value)], [], Float.self) }
    public init(integerLiteral value: Int32) { self.init([Double(value)], [], Int32.self) }
    public init(booleanLiteral value: Bool) { self.init([value ? 1 : 0], [], Bool.self) }
    public init(arrayLiteral elements: MLTensor...) { self.init(stacking: elements) }
}

@available(macOS 15, iOS 18, *)
extension MLTensor {
    public static func + (lhs: MLTensor, rhs: MLTensor) -> MLTensor { combine(lhs, rhs, +) }
    public static func - (lhs: MLTensor, rhs: MLTensor) -> MLTensor { combine(lhs, rhs, -) }
    public static func * (lhs: MLTensor, rhs: MLTensor) -> MLTensor { combine(lhs, rhs, *) }
    public static func / (lhs: MLTensor, rhs: MLTensor) -> MLTensor { combine(lhs, rhs, /) }
    public static prefix func - (x: MLTensor) -> MLTensor { x.map { -$0 } }

    public static func .== (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, ==) }
    public static func .!= (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, !=) }
    public static func .< (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, <) }
    public static func .<= (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, <=) }
    public static func .> (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, >) }
    public static func .>= (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, >=) }

    private func map(_ function: (Double) -> Double) -> MLTensor { MLTensor(values.map(function), shape, scalarType) }

    private static func compare(_ a: MLTensor, _ b: MLTensor, _ holds: (Double, Double) -> Bool) -> MLTensor {
        combine(a, b, type: Bool.self) { holds($0, $1) ? 1 : 0 }
    }

    private static func combine(
        _ a: MLTensor, _ b: MLTensor, type: (any MLTensorScalar.Type)? = nil, _ function: (Double, Double) -> Double
    ) -> MLTensor {
        precondition(a.scalarType == b.scalarType, "\(a.scalarType) and \(b.scalarType) cannot be combined; cast one")
        let rank = Swift.max(a.rank, b.rank)
        let (x, y) = (a.strides(rank), b.strides(rank))
        let shape = (0..<rank).map { axis -> Int in
            let (m, n) = (a.size(axis, rank), b.size(axis, rank))
            precondition(m == n || m == 1 || n == 1, "the shapes \(a.shape) and \(b.shape) do not fit")
            return m == 1 ? n : m
        }
        let values = Self.positions(shape).map { index in
            function(a.values[Self.offset(index, x)], b.values[Self.offset(index, y)])
        }
        return MLTensor(values, shape, type ?? a.scalarType)
    }

    private func size(_ axis: Int, _ rank: Int) -> Int {
        let own = axis - (rank - self.rank)
        return own < 0 ? 1 : shape[own]
    }

    /// Zero where the tensor is stretched.
    private func strides(_ rank: Int) -> [Int] {
        let own = ArrayLayout(cOrder: shape)?.strides ?? []
        return (0..<rank).map { size($0, rank) == 1 ? 0 : own[$0 - (rank - self.rank)] }
    }

    private static func offset(_ index: [Int], _ strides: [Int]) -> Int {
        zip(index, strides).reduce(0) { $0 + $1.0 * $1.1 }
    }

    private static func positions(_ shape: [Int]) -> [[Int]] {
        shape.reduce([[]]) { start, size in start.flatMap { index in (0..<size).map { index + [$0] } } }
    }

    private func axis(_ axis: Int) -> Int {
        let own = axis < 0 ? axis + rank : axis
        precondition(shape.indices.contains(own), "there is no axis \(axis) in shape \(shape)")
        return own
    }

    // MARK: Products

    /// Of the last two axes; the ones before broadcast.
    public func matmul(_ other: MLTensor) -> MLTensor {
        precondition(rank >= 2 && other.rank >= 2, "matmul needs matrices, not \(shape) and \(other.shape)")
        precondition(other.shape[other.rank - 2] == shape[rank - 1], "\(shape) and \(other.shape) cannot be multiplied")
        return (expandingShape(at: rank) * other.expandingShape(at: other.rank - 2)).sum(alongAxes: -2)
    }

    public func softmax(alongAxis axis: Int = -1) -> MLTensor {
        let shifted = self - max(alongAxes: axis, keepRank: true)
        let exponential = shifted.map { exp($0) }
        return exponential / exponential.sum(alongAxes: axis, keepRank: true)
    }

    // MARK: Reductions

    public func sum(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(0, +) }
    }

    public func mean(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(0, +) / Double($0.count) }
    }

    public func max(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(-.infinity) { $0.isNaN || $1.isNaN ? .nan : Swift.max($0, $1) } }
    }

    public func min(alongAxes axes: Int..., keepRank: Bool = false) -> MLTensor {
        reduced(axes, keepRank) { $0.reduce(.infinity) { $0.isNaN || $1.isNaN ? .nan : Swift.min($0, $1) } }
    }

    /// The first index of the largest element.
    public func argmax(alongAxis axis: Int, keepRank: Bool = false) -> MLTensor {
        reduced([axis], keepRank, Int32.self) { row in
            Double(row.indices.max { row[$0] < row[$1] || row[$0] == row[$1] && $0 > $1 } ?? 0)
        }
    }

    /// Of the last axis, largest first.
    public func topK(_ k: Int) -> (values: MLTensor, indices: MLTensor) {
        let size = shape[axis(-1)]
        precondition((0...size).contains(k), "there are \(size) elements, not \(k)")
        let order = (0..<(size == 0 ? 0 : values.count / size)).flatMap { row -> [Int] in
            let start = row * size
            return (0..<size).sorted { (-values[start + $0], $0) < (-values[start + $1], $1) }.prefix(k).map {
                start + $0
            }
        }
        let result = Array(shape.dropLast()) + [k]
        return (
            MLTensor(order.map { values[$0] }, result, scalarType),
            MLTensor(order.map { Double($0 % size) }, result, Int32.self)
        )
    }

    /// No axes: all of them.
    private func reduced(
        _ axes: [Int], _ keepRank: Bool, _ type: (any MLTensorScalar.Type)? = nil, _ body: ([Double]) -> Double
    ) -> MLTensor {
        let gone = axes.isEmpty ? Array(shape.indices) : axes.map(axis)
        let kept = shape.indices.filter { !gone.contains($0) }
        let moved = transposed(permutation: kept + gone.sorted())
        let size = gone.reduce(1) { $0 * shape[$1] }
        let rows = kept.reduce(1) { $0 * shape[$1] }
        let results = (0..<rows).map { body(Array(moved.values[$0 * size..<($0 + 1) * size])) }
        let result = keepRank ? shape.indices.map { gone.contains($0) ? 1 : shape[$0] } : kept.map { shape[$0] }
        return MLTensor(results, result, type ?? scalarType)
    }

    // MARK: Shapes

    public func reshaped(to shape: [Int]) -> MLTensor { MLTensor(values, shape, scalarType) }

    public func expandingShape(at axis: Int) -> MLTensor {
        var shape = shape
        shape.insert(1, at: axis < 0 ? axis + rank + 1 : axis)
        return reshaped(to: shape)
    }

    public func squeezingShape() -> MLTensor { reshaped(to: shape.filter { $0 != 1 }) }

    public func transposed() -> MLTensor { transposed(permutation: Array(shape.indices.reversed())) }

    public func transposed(permutation: [Int]) -> MLTensor {
        precondition(permutation.sorted() == Array(shape.indices), "\(permutation) does not name each axis once")
        let own = ArrayLayout(cOrder: shape)?.strides ?? []
        let moved = permutation.map { shape[$0] }
        let strides = permutation.map { own[$0] }
        return MLTensor(Self.positions(moved).map { values[Self.offset($0, strides)] }, moved, scalarType)
    }

    public init(concatenating tensors: [MLTensor], alongAxis axis: Int = 0) {
        guard let first = tensors.first else { preconditionFailure("there is nothing to concatenate") }
        precondition(tensors.allSatisfy { $0.scalarType == first.scalarType }, "the scalar types differ")
        let at = first.axis(axis)
        let rest = first.shape[(at + 1)...].reduce(1, *)
        let lead = first.shape[..<at].reduce(1, *)
        var shape = first.shape
        shape[at] = tensors.reduce(0) { $0 + $1.shape[at] }
        let values = (0..<lead).flatMap { row in
            tensors.flatMap { tensor -> ArraySlice<Double> in
                let size = tensor.shape[at] * rest
                return tensor.values[row * size..<(row + 1) * size]
            }
        }
        self.init(values, shape, first.scalarType)
    }

    public init(stacking tensors: [MLTensor], alongAxis axis: Int = 0) {
        self.init(concatenating: tensors.map { $0.expandingShape(at: axis) }, alongAxis: axis)
    }

    /// Parts of equal size.
    public func split(count: Int, alongAxis axis: Int = 0) -> [MLTensor] {
        let size = shape[self.axis(axis)]
        precondition(count > 0 && size % count == 0, "\(size) elements cannot be split into \(count) equal parts")
        return split(sizes: Array(repeating: size / count, count: count), alongAxis: axis)
    }

    public func split(sizes: [Int], alongAxis axis: Int = 0) -> [MLTensor] {
        let at = self.axis(axis)
        precondition(sizes.reduce(0, +) == shape[at], "the sizes \(sizes) are not \(shape[at]) together")
        var start = 0
        return sizes.map { size in
            defer { start += size }
            let indices = MLTensor((start..<start + size).map { Int32($0) })
            return gathering(atIndices: indices, alongAxis: at)
        }
    }

    /// The slices at one axis that the indices name.
    public func gathering(atIndices indices: MLTensor, alongAxis axis: Int = 0) -> MLTensor {
        let at = self.axis(axis)
        let rest = shape[(at + 1)...].reduce(1, *)
        let values = (0..<shape[..<at].reduce(1, *)).flatMap { row in
            indices.values.flatMap { index -> ArraySlice<Double> in
                let own = Int(index) < 0 ? Int(index) + shape[at] : Int(index)
                precondition((0..<shape[at]).contains(own), "index \(Int(index)) is not in \(shape[at]) slices")
                let start = (row * shape[at] + own) * rest
                return self.values[start..<start + rest]
            }
        }
        return MLTensor(values, Array(shape[..<at]) + indices.shape + Array(shape[(at + 1)...]), scalarType)
    }
}

@available(macOS 15, iOS 18, *)
extension MLModel {
    public func prediction(from inputs: [String: MLTensor]) async throws -> [String: MLTensor] {
        try tensors(of: engine.predict(arrays(inputs), options: MLPredictionOptions()))
    }

    public func prediction(from inputs: [String: MLTensor], using state: MLState) async throws -> [String: MLTensor] {
        try tensors(of: engine.predict(arrays(inputs), state: state, options: MLPredictionOptions()))
    }

    private func arrays(_ tensors: [String: MLTensor]) throws -> MLDictionaryFeatureProvider {
        try MLDictionaryFeatureProvider(dictionary: tensors.mapValues { try $0.multiArray() })
    }

    /// Outputs that are no arrays are left out.
    private func tensors(of features: any MLFeatureProvider) throws -> [String: MLTensor] {
        var result: [String: MLTensor] = [:]
        for name in features.featureNames {
            if let array = features.featureValue(for: name)?.multiArrayValue { result[name] = try MLTensor(array) }
        }
        return result
    }
}

@available(macOS 15, iOS 18, *)
extension MLTensor {
    fileprivate init(_ array: MLMultiArray) throws {
        let type: any MLTensorScalar.Type =
            switch array.dataType {
            case .float16: Float16.self
            case .float32, .double: Float.self
            case .int32: Int32.self
            case .int8: Int8.self
            }
        self.init((0..<array.count).map { array.view.load(array.layout.offset(linear: $0)) }, array.layout.shape, type)
    }

    fileprivate func multiArray() throws -> MLMultiArray {
        let type: MLMultiArrayDataType =
            scalarType == Float.self ? .float32 : scalarType == Float16.self ? .float16 : .int32
        let array = try MLMultiArray(shape: (shape.isEmpty ? [1] : shape).map { NSNumber(value: $0) }, dataType: type)
        for (index, value) in values.enumerated() { array.view.store(value, index) }
        return array
    }
}
