// Tensors and Core ML's arrays, each as a copy of the other.

import CoreML
import Foundation

extension Tensor {
    /// A copy in C order, whatever the array's strides.
    ///
    /// Throws `badDType` for element types that programs do not take, such as Double.
    public init(_ array: MLMultiArray) throws(RLXError) {
        guard let dtype = DType(array.dataType) else {
            throw RLXError(.badDType, "a tensor cannot hold Core ML's element type \(array.dataType.rawValue)")
        }
        let shape = array.shape.map(\.intValue)
        let strides = array.strides.map { $0.intValue * dtype.size }
        let copy: Result<[UInt8], RLXError> = array.withUnsafeBytes { bytes in
            Result { () throws(RLXError) in
                let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
                return try StridedBytes(base: base, shape: shape, strides: strides, elementSize: dtype.size).bytes()
            }
        }
        self.init(bytes: try copy.get(), dtype: dtype, shape: shape)
    }

    /// A copy as Core ML wants it: rank 0 becomes (1,).
    ///
    /// Throws `badDType` for booleans, which Core ML has no arrays of.
    public func multiArray() throws(RLXError) -> MLMultiArray {
        guard let type = dtype.multiArray else {
            throw RLXError(.badDType, "Core ML has no arrays of \(dtype); convert the tensor to i32 or f32")
        }
        do {
            let array = try MLMultiArray(
                shape: (shape.isEmpty ? [1] : shape).map { NSNumber(value: $0) }, dataType: type)
            array.withUnsafeMutableBytes { target, _ in target.copyBytes(from: bytes) }
            return array
        } catch {
            throw RLXError(coreML: error, doing: "make an array of shape \(shape.text)")
        }
    }
}

extension DType {
    /// Nil for what cannot cross Core ML's boundary.
    var multiArray: MLMultiArrayDataType? {
        switch self {
        case .float32: .float32
        case .float16: .float16
        case .int32: .int32
        case .bool: nil
        }
    }

    init?(_ type: MLMultiArrayDataType) {
        guard let match = Self.allCases.first(where: { $0.multiArray == type }) else { return nil }
        self = match
    }
}
