// C arguments into Swift values, and thrown errors into statuses. Decides nothing else.

import CRLX
import RLX

/// Runs the body of a C function: OK, or the error's code and, where the caller asked for it, the error.
func attempt(
    _ error: UnsafeMutablePointer<OpaquePointer?>?, _ body: () throws(RLXError) -> Void
) -> rlx_status {
    do {
        try body()
        return RLX_STATUS_OK
    } catch let failure {
        error?.pointee = retained(ErrorHandle(failure))
        return rlx_status(UInt32(failure.code.rawValue))
    }
}

extension RLXError {
    static func null(_ argument: String) -> RLXError {
        RLXError(.invalidArgument, "the argument '\(argument)' is NULL", subject: argument)
    }
}

func handle<T: Handle>(_ pointer: OpaquePointer?, _ argument: String) throws(RLXError) -> T {
    guard let object = borrowed(pointer, as: T.self) else {
        throw RLXError(
            .invalidArgument, "the argument '\(argument)' is NULL or a handle of another kind", subject: argument)
    }
    return object
}

func nonNull<T>(_ value: T?, _ argument: String) throws(RLXError) -> T {
    guard let value else { throw .null(argument) }
    return value
}

func string(_ pointer: UnsafePointer<CChar>?, _ argument: String) throws(RLXError) -> String {
    guard let string = try optionalString(pointer, argument) else { throw .null(argument) }
    return string
}

func optionalString(_ pointer: UnsafePointer<CChar>?, _ argument: String) throws(RLXError) -> String? {
    guard let pointer else { return nil }
    guard let string = String(validatingCString: pointer) else {
        throw RLXError(.invalidArgument, "the argument '\(argument)' is not UTF-8", subject: argument)
    }
    return string
}

func buffer<T>(
    _ start: UnsafePointer<T>?, count: Int, _ argument: String
) throws(RLXError) -> UnsafeBufferPointer<T> {
    guard count >= 0 else {
        throw RLXError(.invalidArgument, "the count of '\(argument)' is negative", subject: argument)
    }
    guard start != nil || count == 0 else { throw .null(argument) }
    return UnsafeBufferPointer(start: start, count: count)
}

/// Structs begin with their size as the caller knows it; ours may only have grown.
func checkSize<T>(_ size: Int, of type: T.Type, _ argument: String) throws(RLXError) {
    guard size >= MemoryLayout<T>.size else {
        throw RLXError(
            .invalidArgument,
            "'\(argument)'.size is \(size); set it to sizeof(\(T.self)), which is \(MemoryLayout<T>.size)",
            subject: argument)
    }
}

extension RLXError {
    static func unknown(_ enumeration: String, _ value: Int32) -> RLXError {
        RLXError(.invalidArgument, "\(value) is no \(enumeration)", subject: enumeration)
    }
}

/// The element type and the memory that an `rlx_tensor` describes.
func view(
    _ tensor: UnsafePointer<rlx_tensor>?, _ argument: String
) throws(RLXError) -> (dtype: DType, bytes: StridedBytes) {
    let code = try nonNull(tensor, argument).pointee.dtype
    guard let dtype = DType(rawValue: code) else {
        throw RLXError(.badDType, "\(code) is no rlx_dtype that a session takes", subject: argument)
    }
    return (dtype, try strided(tensor, argument, elementSize: dtype.size))
}

/// The memory that an `rlx_tensor` describes, whatever its elements.
func strided(
    _ tensor: UnsafePointer<rlx_tensor>?, _ argument: String, elementSize: Int
) throws(RLXError) -> StridedBytes {
    let tensor = try nonNull(tensor, argument).pointee
    try checkSize(tensor.size, of: rlx_tensor.self, argument)
    let maximalRank = 64
    guard (0...maximalRank).contains(Int(tensor.rank)) else {
        throw RLXError(.badShape, "the rank \(tensor.rank) is not in 0...\(maximalRank)", subject: argument)
    }
    let rank = Int(tensor.rank)
    let shape = try buffer(tensor.shape, count: rank, "\(argument).shape").map { Int(clamping: $0) }
    let strides = tensor.strides.map { UnsafeBufferPointer(start: $0, count: rank).map { Int(clamping: $0) } }
    return try StridedBytes(base: tensor.data, shape: shape, strides: strides, elementSize: elementSize)
}
