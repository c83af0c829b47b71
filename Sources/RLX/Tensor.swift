// Values that users hand in and get back: numbers with a shape.

/// Numbers in C order with a shape: a value that may cross threads.
///
/// ```swift
/// let x = try Tensor([1, 2, 3, 4, 5, 6] as [Float], shape: [2, 3])
/// let values = try x.scalars(as: Float.self)
/// ```
public struct Tensor: Sendable, Hashable {
    /// The type of each element.
    public let dtype: DType
    /// The size along each axis; empty for a single number.
    public let shape: [Int]
    /// Little-endian elements in C order.
    let bytes: [UInt8]

    /// `bytes` are as many as the shape needs.
    init(bytes: [UInt8], dtype: DType, shape: [Int]) {
        self.dtype = dtype
        self.shape = shape
        self.bytes = bytes
    }

    init(copying bytes: UnsafeMutableRawBufferPointer, dtype: DType, shape: [Int]) {
        self.init(bytes: Array(bytes), dtype: dtype, shape: shape)
    }

    /// Throws `badShape` when the shape does not have as many scalars.
    public init<S: TensorScalar>(_ scalars: [S], shape: [Int]) throws(RLXError) {
        guard let count = elementCount(shape) else { throw .tooLarge(shape) }
        guard count == scalars.count else { throw .scalarCount(expected: count, got: scalars.count, shape: shape) }
        dtype = S.dtype
        self.shape = shape
        bytes = scalars.withUnsafeBytes { Array($0) }
    }

    /// A tensor of rank 0.
    public init<S: TensorScalar>(_ scalar: S) {
        dtype = S.dtype
        shape = []
        bytes = withUnsafeBytes(of: scalar) { Array($0) }
    }

    /// How many elements there are.
    public var count: Int { bytes.count / dtype.size }

    /// All scalars in C order. Throws `badDType` when the tensor holds another type.
    public func scalars<S: TensorScalar>(as type: S.Type) throws(RLXError) -> [S] {
        guard S.dtype == dtype else { throw .dtypeMismatch("tensor", expected: dtype, got: S.dtype) }
        return bytes.withUnsafeBytes { source in
            (0..<count).map { source.loadUnaligned(fromByteOffset: $0 * MemoryLayout<S>.size, as: S.self) }
        }
    }

    /// A copy of a view's elements.
    package init(copying view: StridedBytes, dtype: DType) {
        self.init(bytes: view.bytes(), dtype: dtype, shape: view.shape)
    }

    /// Copies into a view of the tensor's dtype and shape.
    package func copy(to target: StridedBytes, dtype: DType, name: String) throws(RLXError) {
        try Feature(name: name, dtype: self.dtype, shape: shape).check(dtype: dtype, shape: target.shape)
        bytes.withUnsafeBytes { source in
            if let base = source.baseAddress { target.copy(from: base) }
        }
    }

    /// Reads in place; the view must not be written to.
    func withView<R>(_ body: (StridedBytes) throws(RLXError) -> R) throws(RLXError) -> R {
        let result: Result<R, RLXError> = bytes.withUnsafeBytes { buffer in
            Result { () throws(RLXError) in
                let base = UnsafeMutableRawPointer(mutating: buffer.baseAddress)
                return try body(StridedBytes(base: base, shape: shape, strides: nil, elementSize: dtype.size))
            }
        }
        return try result.get()
    }
}

/// Swift types of tensor elements.
public protocol TensorScalar: Sendable {
    /// The element type of tensors of these.
    static var dtype: DType { get }
}

extension Float: TensorScalar {
    public static var dtype: DType { .float32 }
}

extension Int32: TensorScalar {
    public static var dtype: DType { .int32 }
}

extension Bool: TensorScalar {
    public static var dtype: DType { .bool }
}

#if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
extension Float16: TensorScalar {
    public static var dtype: DType { .float16 }
}
#endif
