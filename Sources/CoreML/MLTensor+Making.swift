// Ways to make tensors: from scalars, bytes, literals, ranges and chance.
import Foundation

@available(macOS 15, iOS 18, *)
extension MLTensor {
    public init(shape: [Int], scalars: some Collection<Float>) {
        self.init(scalars.map(Double.init), shape, Float.self)
    }

    public init<Scalar: MLTensorScalar>(
        shape: [Int], scalars: some Collection<Scalar>, scalarType: Scalar.Type = Scalar.self
    ) {
        self.init(scalars.map(Scalar.double), shape, scalarType)
    }

    public init<Scalar: MLTensorScalar>(_ value: Scalar, scalarType: Scalar.Type = Scalar.self) {
        self.init([Scalar.double(value)], [], scalarType)
    }

    public init<Scalar: MLTensorScalar>(_ scalars: some Collection<Scalar>, scalarType: Scalar.Type = Scalar.self) {
        self.init(scalars.map(Scalar.double), [scalars.count], scalarType)
    }

    public init(_ scalars: some Collection<Float>) { self.init(scalars.map(Double.init), [scalars.count], Float.self) }
    public init(_ scalars: some Collection<Int32>) { self.init(scalars.map(Double.init), [scalars.count], Int32.self) }

    public init(repeating repeatedValue: Float, shape: [Int]) {
        self.init(Array(repeating: Double(repeatedValue), count: Self.count(shape)), shape, Float.self)
    }

    public init<Scalar: MLTensorScalar>(
        repeating repeatedValue: Scalar, shape: [Int], scalarType: Scalar.Type = Scalar.self
    ) {
        self.init(Array(repeating: Scalar.double(repeatedValue), count: Self.count(shape)), shape, scalarType)
    }

    public init<Scalar: MLTensorScalar & FixedWidthInteger>(
        zeros shape: [Int], scalarType: Scalar.Type = Scalar.self
    ) {
        self.init(repeating: 0, shape: shape, scalarType: scalarType)
    }

    public init<Scalar: MLTensorScalar & BinaryFloatingPoint>(
        zeros shape: [Int], scalarType: Scalar.Type = Scalar.self
    ) where Scalar.RawSignificand: FixedWidthInteger {
        self.init(repeating: 0, shape: shape, scalarType: scalarType)
    }

    public init<Scalar: MLTensorScalar & FixedWidthInteger>(ones shape: [Int], scalarType: Scalar.Type = Scalar.self) {
        self.init(repeating: 1, shape: shape, scalarType: scalarType)
    }

    public init<Scalar: MLTensorScalar & BinaryFloatingPoint>(
        ones shape: [Int], scalarType: Scalar.Type = Scalar.self
    ) where Scalar.RawSignificand: FixedWidthInteger {
        self.init(repeating: 1, shape: shape, scalarType: scalarType)
    }

    public init<ShapedArray: MLShapedArrayProtocol>(_ shapedArray: ShapedArray)
    where ShapedArray.Scalar: MLTensorScalar {
        self.init(shapedArray.scalars.map(ShapedArray.Scalar.double), shapedArray.shape, ShapedArray.Scalar.self)
    }

    // MARK: Bytes

    /// The bytes of the scalars, in C order.
    public init(shape: [Int], data: Data, scalarType: any MLTensorScalar.Type) {
        let values = data.withUnsafeBytes { bytes in
            (0..<Self.count(shape)).map { scalarType.loaded(bytes, $0) }
        }
        self.init(values, shape, scalarType)
    }

    /// Here the bytes are copied, and released at once.
    public init(
        bytesNoCopy bytes: UnsafeRawBufferPointer, shape: [Int], scalarType: any MLTensorScalar.Type,
        deallocator: Data.Deallocator
    ) {
        guard let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress) else {
            self.init([], shape, scalarType)
            return
        }
        let data = Data(bytesNoCopy: base, count: bytes.count, deallocator: deallocator)
        self.init(shape: shape, data: data, scalarType: scalarType)
    }

    public init(
        unsafeUninitializedShape shape: [Int], scalarType: any MLTensorScalar.Type,
        initializingWith initializer: (UnsafeMutableRawBufferPointer) throws -> Void
    ) rethrows {
        var data = Data(count: Self.count(shape) * scalarType.byteCount)
        try data.withUnsafeMutableBytes { try initializer($0) }
        self.init(shape: shape, data: data, scalarType: scalarType)
    }

    // MARK: Sequences and chance

    public init(rangeFrom start: Float, to end: Float, by stride: Float.Stride) {
        self.init(rangeFrom: start, to: end, by: stride, scalarType: Float.self)
    }

    public init<Scalar: MLTensorScalar & Strideable>(
        rangeFrom start: Scalar, to end: Scalar, by stride: Scalar.Stride, scalarType: Scalar.Type = Scalar.self
    ) {
        self.init([Scalar](Swift.stride(from: start, to: end, by: stride)), scalarType: scalarType)
    }

    public init(linearSpaceFrom start: Float, through end: Float, count: Int) {
        self.init(linearSpaceFrom: start, through: end, count: count, scalarType: Float.self)
    }

    public init<Scalar: MLTensorScalar & BinaryFloatingPoint>(
        linearSpaceFrom start: Scalar, through end: Scalar, count: Int, scalarType: Scalar.Type = Scalar.self
    ) {
        precondition(count > 0, "\(count) elements are too few")
        let step = count == 1 ? 0 : (Double(end) - Double(start)) / Double(count - 1)
        self.init((0..<count).map { Double(start) + Double($0) * step }, [count], scalarType)
    }

    public init<Scalar: MLTensorScalar & BinaryFloatingPoint>(
        randomNormal shape: [Int], mean: Scalar = Scalar(0.0), standardDeviation: Scalar = Scalar(1.0),
        seed: UInt64? = nil, scalarType: Scalar.Type = Scalar.self
    ) {
        var generator = SeededGenerator(seed: seed ?? .random(in: .min ... .max))
        let values = (0..<Self.count(shape)).map { _ in
            let radius = (-2 * Foundation.log(1 - Double.random(in: 0..<1, using: &generator))).squareRoot()
            let angle = 2 * Double.pi * Double.random(in: 0..<1, using: &generator)
            return Double(mean) + Double(standardDeviation) * radius * Foundation.cos(angle)
        }
        self.init(values, shape, scalarType)
    }

    public init<Scalar: MLTensorScalar & BinaryFloatingPoint>(
        randomUniform shape: [Int], in bounds: Range<Scalar> = 0..<1, seed: UInt64? = nil,
        scalarType: Scalar.Type = Scalar.self
    ) {
        var generator = SeededGenerator(seed: seed ?? .random(in: .min ... .max))
        let range = Double(bounds.lowerBound)..<Double(bounds.upperBound)
        self.init((0..<Self.count(shape)).map { _ in .random(in: range, using: &generator) }, shape, scalarType)
    }

    public init<Scalar: MLTensorScalar & BinaryInteger>(
        randomUniform shape: [Int], in bounds: ClosedRange<Scalar> = 0...1, seed: UInt64? = nil,
        scalarType: Scalar.Type = Scalar.self
    ) {
        var generator = SeededGenerator(seed: seed ?? .random(in: .min ... .max))
        let range = Int(bounds.lowerBound)...Int(bounds.upperBound)
        let values = (0..<Self.count(shape)).map { _ in Double(Int.random(in: range, using: &generator)) }
        self.init(values, shape, scalarType)
    }
}

@available(macOS 15, iOS 18, *)
extension MLTensor: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral
{
    public init(floatLiteral: Float) { self.init([Double(floatLiteral)], [], Float.self) }
    public init(integerLiteral: Int32) { self.init([Double(integerLiteral)], [], Int32.self) }
    public init(booleanLiteral: Bool) { self.init([booleanLiteral ? 1 : 0], [], Bool.self) }
    public init(arrayLiteral elements: MLTensor...) { self.init(stacking: elements) }
}

@available(macOS 15, iOS 18, *)
extension MLTensorScalar {
    fileprivate static var byteCount: Int { MemoryLayout<Self>.size }
}
