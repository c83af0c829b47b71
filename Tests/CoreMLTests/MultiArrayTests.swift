import CoreML
import Testing

@Suite struct MultiArrayTests {
    @Test func freshArrays() throws {
        let array = try MLMultiArray(shape: [2, 3, 4], dataType: .float32)
        #expect(array.shape == [2, 3, 4])
        #expect(array.strides == [12, 4, 1])
        #expect(array.count == 24)
        #expect(array[5].floatValue.isNaN)
        #expect(try MLMultiArray(shape: [], dataType: .double).count == 1)
        #expect(try MLMultiArray(shape: [0, 3], dataType: .double).count == 0)
        #expect(throws: MLModelError.self) { try MLMultiArray(shape: [-1], dataType: .double) }
        let huge = NSNumber(value: Int.max)
        #expect(throws: MLModelError.self) { try MLMultiArray(shape: [huge, huge], dataType: .double) }
    }

    @Test(arguments: [MLMultiArrayDataType.double, .float32, .float16, .int32, .int8])
    func subscripts(_ type: MLMultiArrayDataType) throws {
        let array = try MLMultiArray(shape: [2, 3], dataType: type)
        for index in 0..<6 { array[index] = NSNumber(value: index * 2 - 3) }
        #expect(array[[1, 2]] == 7)
        #expect(array[[0, 0]] == -3)
        array[[1, 0]] = 100
        #expect(array[3] == 100)
    }

    @Test func foreignMemoryWithStrides() throws {
        var memory = (0..<12).map(Float.init)
        try memory.withUnsafeMutableBytes { bytes in
            let base = try #require(bytes.baseAddress)
            let array = try MLMultiArray(dataPointer: base, shape: [2, 3], dataType: .float32, strides: [6, 2])
            #expect(numbers(array) == [0, 2, 4, 6, 8, 10])
            array[[1, 1]] = -1
            #expect(array.withUnsafeBytes(\.count) == 11 * 4)
            array.withUnsafeMutableBufferPointer(ofType: Float.self) { buffer, strides in
                #expect(strides == [6, 2])
                #expect(buffer[8] == -1)
            }
        }
        #expect(memory[8] == -1)
        var called = false
        do {
            let memory = UnsafeMutableRawPointer.allocate(byteCount: 4, alignment: 4)
            memory.storeBytes(of: 7, as: Int32.self)
            let array = try MLMultiArray(
                dataPointer: memory, shape: [1], dataType: .int32, strides: [1],
                deallocator: {
                    $0.deallocate()
                    called = true
                })
            #expect(array[0] == 7)
        }
        #expect(called)
    }

    @Test func transfers() throws {
        let source = try array([1.5, -2.75, 3, 4, 5, 6], [2, 3])
        let padded = MLMultiArray(shape: [2, 3], dataType: .float16, strides: [8, 2])
        source.transfer(to: padded)
        #expect(numbers(padded) == [1.5, -2.75, 3, 4, 5, 6])
        let integers = try MLMultiArray(shape: [2, 3], dataType: .int32)
        padded.transfer(to: integers)
        #expect(numbers(integers) == [1, -2, 3, 4, 5, 6])
        let extreme = try array([.nan, .infinity, -.infinity], [3])
        let target = try MLMultiArray(shape: [3], dataType: .int32)
        extreme.transfer(to: target)
        #expect(target[0] == 0)
        #expect(target[1].int32Value == .max)
        #expect(target[2].int32Value == .min)
    }

    @Test func madeFromCollections() throws {
        #expect(try MLMultiArray([1, 2, 3]).dataType == .int32)
        #expect(try MLMultiArray([1.5, 2] as [Double]).dataType == .double)
        let floats = try MLMultiArray([1.5, 2] as [Float])
        #expect(floats.dataType == .float32)
        #expect(floats.shape == [2])
        let joined = MLMultiArray(
            concatenating: [try array([1, 2], [2, 1]), try array([3, 4, 5, 6], [2, 2], .double)], axis: 1,
            dataType: .float32)
        #expect(joined.shape == [2, 3])
        #expect(numbers(joined) == [1, 3, 4, 2, 5, 6])
    }

    @Test func oldPointers() throws {
        let floats = try array([1, 2], [2])
        #expect(Array(try UnsafeBufferPointer<Float>(floats)) == [1, 2])
        #expect(throws: MLModelError.self) { try UnsafeBufferPointer<Int32>(floats) }
    }

    @Test func typeNames() {
        #expect(MLMultiArrayDataType.float == .float32)
        #expect(MLMultiArrayDataType.float64 == .double)
        #expect(MLMultiArrayDataType(rawValue: 0x10010) == .float16)
    }
}
