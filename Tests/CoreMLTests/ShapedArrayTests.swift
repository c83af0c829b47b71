import CoreML
import Testing

@Suite struct ShapedArrayTests {
    @Test func scalars() {
        var array = MLShapedArray<Float>(scalars: [1, 2, 3, 4, 5, 6], shape: [2, 3])
        #expect(array.strides == [3, 1])
        #expect(array.count == 2)
        #expect(array.scalarCount == 6)
        #expect(array[scalarAt: 1, 0] == 4)
        array[scalarAt: [0, 2]] = -3
        #expect(array.scalars == [1, 2, -3, 4, 5, 6])
        #expect(array.reshaped(to: [6])[scalarAt: 2] == -3)
        array.fill(with: 7)
        #expect(array == MLShapedArray(repeating: 7, shape: [2, 3]))
        #expect(MLShapedArray<Int32>(scalar: 4).scalar == 4)
        let bytes = Data([1, 0, 0, 0, 2, 0, 0, 0])
        #expect(MLShapedArray<Int32>(data: bytes, shape: [2]).scalars == [1, 2])
    }

    @Test func fromAndToMultiArrays() throws {
        let padded = MLMultiArray(shape: [2, 3], dataType: .float16, strides: [8, 2])
        try array([1, 2, 3, 4, 5, 6], [2, 3]).transfer(to: padded)
        #expect(MLShapedArray<Float>(converting: padded).scalars == [1, 2, 3, 4, 5, 6])
        #expect(MLShapedArray<Float16>(padded).scalars == [1, 2, 3, 4, 5, 6])
        let shaped = MLShapedArray<Double>(scalars: [0.5, 1.5], shape: [1, 2])
        let multi = MLMultiArray(shaped)
        #expect(multi.shape == [1, 2])
        #expect(multi.dataType == .double)
        let value = MLFeatureValue(shapedArray: shaped)
        #expect(value.shapedArrayValue(of: Double.self) == shaped)
        #expect(value.shapedArrayValue(of: Float.self) == nil)
    }

    @Test func buffers() {
        var array = MLShapedArray<Float>(unsafeUninitializedShape: [2, 2]) { buffer, strides in
            #expect(strides == [2, 1])
            for index in buffer.indices { buffer.initializeElement(at: index, to: Float(index)) }
        }
        array.withUnsafeMutableShapedBufferPointer { buffer, shape, strides in buffer[3] = 9 }
        #expect(array.withUnsafeShapedBufferPointer { buffer, shape, _ in Array(buffer) } == [0, 1, 2, 9])
    }
}
