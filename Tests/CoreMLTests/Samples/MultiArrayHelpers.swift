// Extensions of MLMultiArray as many packages carry them.
import CoreML

extension MLMultiArray {
    /// All values as doubles, whatever the type.
    func toDoubles() -> [Double] {
        let length = count
        switch dataType {
        case .double:
            let pointer = dataPointer.bindMemory(to: Double.self, capacity: length)
            return Array(UnsafeBufferPointer(start: pointer, count: length))
        case .float32:
            let pointer = UnsafeMutablePointer<Float>(OpaquePointer(dataPointer))
            return UnsafeBufferPointer(start: pointer, count: length).map(Double.init)
        case .int32:
            let pointer = dataPointer.assumingMemoryBound(to: Int32.self)
            return UnsafeBufferPointer(start: pointer, count: length).map(Double.init)
        #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
        case .float16:
            return MLShapedArray<Float16>(self).scalars.map(Double.init)
        #endif
        default:
            return (0..<length).map { self[$0].doubleValue }
        }
    }

    func argmax() -> (index: Int, value: Double)? {
        toDoubles().enumerated().max { $0.element < $1.element }.map { ($0.offset, $0.element) }
    }

    static func from(_ values: [Float], dims: Int = 1) throws -> MLMultiArray {
        let shape = Array(repeating: 1, count: dims - 1) + [values.count]
        let array = try MLMultiArray(shape: shape as [NSNumber], dataType: .float32)
        let pointer = UnsafeMutableBufferPointer<Float>(
            start: array.dataPointer.assumingMemoryBound(to: Float.self), count: values.count)
        _ = pointer.initialize(from: values)
        return array
    }

    /// A view of one row without copying.
    func row(_ index: Int) throws -> MLMultiArray {
        let rest = Array(shape.dropFirst())
        let start = index * strides[0].intValue * 4
        return try MLMultiArray(
            dataPointer: dataPointer.advanced(by: start), shape: rest, dataType: dataType,
            strides: Array(strides.dropFirst()), deallocator: nil)
    }

    func reshaped(to dimensions: [Int]) throws -> MLMultiArray {
        precondition(dimensions.reduce(1, *) == count, "Cannot reshape")
        let newShape = dimensions.map { NSNumber(value: $0) }
        var newStrides = [Int](repeating: 1, count: dimensions.count)
        for i in stride(from: dimensions.count - 2, through: 0, by: -1) {
            newStrides[i] = newStrides[i + 1] * dimensions[i + 1]
        }
        return try MLMultiArray(
            dataPointer: dataPointer, shape: newShape, dataType: dataType,
            strides: newStrides.map { NSNumber(value: $0) })
    }

    /// Right for padded rows too.
    func scalars() -> [Float] {
        MLShapedArray<Float>(converting: self).scalars
    }
}
