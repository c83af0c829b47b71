// What tensors are put through element by element, with broadcasting.
import Foundation

@available(macOS 15, iOS 18, *)
extension MLTensor {
    public static func + (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs + lhs.like(rhs) }
    public static func + (lhs: some MLTensorScalar & Numeric, rhs: MLTensor) -> MLTensor { rhs.like(lhs) + rhs }
    public static func + (lhs: MLTensor, rhs: MLTensor) -> MLTensor { combine(lhs, rhs, +) }
    public static func += (lhs: inout MLTensor, rhs: MLTensor) { lhs = lhs + rhs }

    public static func - (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs - lhs.like(rhs) }
    public static func - (lhs: some MLTensorScalar & Numeric, rhs: MLTensor) -> MLTensor { rhs.like(lhs) - rhs }
    public static func - (lhs: MLTensor, rhs: MLTensor) -> MLTensor { combine(lhs, rhs, -) }
    public static func -= (lhs: inout MLTensor, rhs: MLTensor) { lhs = lhs - rhs }

    public static func * (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs * lhs.like(rhs) }
    public static func * (lhs: some MLTensorScalar & Numeric, rhs: MLTensor) -> MLTensor { rhs.like(lhs) * rhs }
    public static func * (lhs: MLTensor, rhs: MLTensor) -> MLTensor { combine(lhs, rhs, *) }
    public static func *= (lhs: inout MLTensor, rhs: MLTensor) { lhs = lhs * rhs }

    public static func / (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs / lhs.like(rhs) }
    public static func / (lhs: some MLTensorScalar & Numeric, rhs: MLTensor) -> MLTensor { rhs.like(lhs) / rhs }
    public static func / (lhs: MLTensor, rhs: MLTensor) -> MLTensor { combine(lhs, rhs, /) }
    public static func /= (lhs: inout MLTensor, rhs: MLTensor) { lhs = lhs / rhs }

    public static func % (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs % lhs.like(rhs) }
    public static func % (lhs: some MLTensorScalar & Numeric, rhs: MLTensor) -> MLTensor { rhs.like(lhs) % rhs }
    @_disfavoredOverload
    public static func % (lhs: MLTensor, rhs: MLTensor) -> MLTensor {
        combine(lhs, rhs) { $0.truncatingRemainder(dividingBy: $1) }
    }
    public static func %= (lhs: inout MLTensor, rhs: MLTensor) { lhs = lhs % rhs }

    public func pow(_ exponent: some MLTensorScalar & Numeric) -> MLTensor { pow(like(exponent)) }
    @_disfavoredOverload
    public func pow(_ exponent: MLTensor) -> MLTensor { Self.combine(self, exponent) { Foundation.pow($0, $1) } }

    public static prefix func - (rhs: MLTensor) -> MLTensor { rhs.map { -$0 } }

    // MARK: Truth

    public static func .== (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs .== lhs.like(rhs) }
    public static func .== (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, ==) }
    public static func .!= (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs .!= lhs.like(rhs) }
    public static func .!= (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, !=) }
    public static func .< (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs .< lhs.like(rhs) }
    public static func .< (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, <) }
    public static func .<= (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs .<= lhs.like(rhs) }
    public static func .<= (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, <=) }
    public static func .> (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs .> lhs.like(rhs) }
    public static func .> (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, >) }
    public static func .>= (lhs: MLTensor, rhs: some MLTensorScalar & Numeric) -> MLTensor { lhs .>= lhs.like(rhs) }
    public static func .>= (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs, >=) }

    public static prefix func .! (rhs: MLTensor) -> MLTensor { rhs.map { $0 == 0 ? 1 : 0 } }
    public static func .& (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs) { $0 != 0 && $1 != 0 } }
    public static func .| (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs) { $0 != 0 || $1 != 0 } }
    public static func .^ (lhs: MLTensor, rhs: MLTensor) -> MLTensor { compare(lhs, rhs) { ($0 != 0) != ($1 != 0) } }

    /// The replacement where the mask is true.
    public func replacing(with replacement: MLTensor, where mask: MLTensor) -> MLTensor {
        precondition(mask.scalarType == Bool.self, "a mask holds Bool, not \(mask.scalarType)")
        let chosen = MLTensor(mask.values, mask.shape, scalarType)
        let wide = Self.combine(self, chosen) { own, _ in own }
        let other = Self.combine(Self.combine(replacement, chosen) { new, _ in new }, wide) { new, _ in new }
        let values = Self.combine(chosen, wide) { where_, _ in where_ }.values
        return MLTensor(
            values.indices.map { values[$0] != 0 ? other.values[$0] : wide.values[$0] }, wide.shape, scalarType)
    }

    public func replacing(with replacement: some MLTensorScalar, where mask: MLTensor) -> MLTensor {
        replacing(with: like(replacement), where: mask)
    }

    // MARK: Functions

    public func abs() -> MLTensor { map { Swift.abs($0) } }
    public func acos() -> MLTensor { map { Foundation.acos($0) } }
    public func acosh() -> MLTensor { map { Foundation.acosh($0) } }
    public func asin() -> MLTensor { map { Foundation.asin($0) } }
    public func asinh() -> MLTensor { map { Foundation.asinh($0) } }
    public func atan() -> MLTensor { map { Foundation.atan($0) } }
    public func atanh() -> MLTensor { map { Foundation.atanh($0) } }
    public func ceil() -> MLTensor { map { $0.rounded(.up) } }
    public func cos() -> MLTensor { map { Foundation.cos($0) } }
    public func cosh() -> MLTensor { map { Foundation.cosh($0) } }
    public func exp() -> MLTensor { map { Foundation.exp($0) } }
    public func exp2() -> MLTensor { map { Foundation.exp2($0) } }
    public func floor() -> MLTensor { map { $0.rounded(.down) } }
    public func log() -> MLTensor { map { Foundation.log($0) } }
    public func reciprocal() -> MLTensor { map { 1 / $0 } }
    public func round() -> MLTensor { map { $0.rounded(.toNearestOrEven) } }
    public func rsqrt() -> MLTensor { map { 1 / $0.squareRoot() } }
    public func sign() -> MLTensor { map { $0 > 0 ? 1 : $0 < 0 ? -1 : $0 } }
    public func sin() -> MLTensor { map { Foundation.sin($0) } }
    public func sinh() -> MLTensor { map { Foundation.sinh($0) } }
    public func squareRoot() -> MLTensor { map { $0.squareRoot() } }
    public func squared() -> MLTensor { map { $0 * $0 } }
    public func tan() -> MLTensor { map { Foundation.tan($0) } }
    public func tanh() -> MLTensor { map { Foundation.tanh($0) } }

    public func clamped(to bounds: ClosedRange<Float>) -> MLTensor {
        clamped(to: bounds.lowerBound...).clamped(to: ...bounds.upperBound)
    }

    public func clamped(to bounds: PartialRangeFrom<Float>) -> MLTensor {
        map { $0 < Double(bounds.lowerBound) ? Double(bounds.lowerBound) : $0 }
    }

    public func clamped(to bounds: PartialRangeThrough<Float>) -> MLTensor {
        map { $0 > Double(bounds.upperBound) ? Double(bounds.upperBound) : $0 }
    }
}

@available(macOS 15, iOS 18, *)
public func pointwiseMin(_ lhs: MLTensor, _ rhs: MLTensor) -> MLTensor {
    MLTensor.combine(lhs, rhs) { $0.isNaN || $1.isNaN ? .nan : Swift.min($0, $1) }
}

@available(macOS 15, iOS 18, *)
public func pointwiseMax(_ lhs: MLTensor, _ rhs: MLTensor) -> MLTensor {
    MLTensor.combine(lhs, rhs) { $0.isNaN || $1.isNaN ? .nan : Swift.max($0, $1) }
}

@available(macOS 15, iOS 18, *)
extension MLTensor {
    private func map(_ function: (Double) -> Double) -> MLTensor { MLTensor(values.map(function), shape, scalarType) }

    /// A scalar of this tensor's type.
    func like<Scalar: MLTensorScalar>(_ scalar: Scalar) -> MLTensor {
        MLTensor([Scalar.double(scalar)], [], scalarType)
    }

    private static func compare(_ a: MLTensor, _ b: MLTensor, _ holds: (Double, Double) -> Bool) -> MLTensor {
        combine(a, b, type: Bool.self) { holds($0, $1) ? 1 : 0 }
    }

    static func combine(
        _ a: MLTensor, _ b: MLTensor, type: (any MLTensorScalar.Type)? = nil, _ function: (Double, Double) -> Double
    ) -> MLTensor {
        let rank = Swift.max(a.rank, b.rank)
        let shape = (0..<rank).map { axis -> Int in
            let (m, n) = (a.size(axis, rank), b.size(axis, rank))
            precondition(m == n || m == 1 || n == 1, "the shapes \(a.shape) and \(b.shape) do not fit")
            return m == 1 ? n : m
        }
        let (x, y) = (a.read(shape, a.strides(rank)), b.read(shape, b.strides(rank)))
        return MLTensor(zip(x, y).map(function), shape, type ?? wider(a.scalarType, b.scalarType))
    }

    /// The type that the results of two types have: floats before integers, then the larger one.
    private static func wider(
        _ a: any MLTensorScalar.Type, _ b: any MLTensorScalar.Type
    ) -> any MLTensorScalar.Type {
        let order: [any MLTensorScalar.Type] = [
            Bool.self, UInt8.self, Int8.self, UInt16.self, Int16.self, UInt32.self, Int32.self, Float16.self,
            Float.self,
        ]
        return order.last { $0 == a || $0 == b } ?? a
    }

    private func size(_ axis: Int, _ rank: Int) -> Int {
        let own = axis - (rank - self.rank)
        return own < 0 ? 1 : shape[own]
    }

    /// Zero where the tensor is stretched.
    private func strides(_ rank: Int) -> [Int] {
        (0..<rank).map { size($0, rank) == 1 ? 0 : ownStrides[$0 - (rank - self.rank)] }
    }

    var ownStrides: [Int] { ArrayLayout(cOrder: shape)?.strides ?? [] }

    /// The values at the places of another layout, in C order. Strides may be negative.
    func read(_ shape: [Int], _ strides: [Int], from start: Int = 0) -> [Double] {
        guard let size = shape.last, let stride = strides.last else { return [values[start]] }
        guard !shape.contains(0) else { return [] }
        var result: [Double] = []
        result.reserveCapacity(Self.count(shape))
        var index = [Int](repeating: 0, count: shape.count - 1)
        while true {
            let row = zip(index, strides).reduce(start) { $0 + $1.0 * $1.1 }
            for column in 0..<size { result.append(values[row + column * stride]) }
            guard let axis = index.indices.last(where: { index[$0] + 1 < shape[$0] }) else { return result }
            index[axis] += 1
            for later in (axis + 1)..<index.count { index[later] = 0 }
        }
    }

    func axis(_ axis: Int) -> Int {
        let own = axis < 0 ? axis + rank : axis
        precondition(shape.indices.contains(own), "there is no axis \(axis) in shape \(shape)")
        return own
    }
}
