import CoreML
import RLX
import Testing

@Suite struct TensorTests {
    @Test func scalars() throws {
        let tensor = try Tensor([1, 2, 3, 4, 5, 6] as [Float], shape: [2, 3])
        #expect(tensor.shape == [2, 3])
        #expect(tensor.dtype == .float32)
        #expect(tensor.count == 6)
        #expect(try tensor.scalars(as: Float.self) == [1, 2, 3, 4, 5, 6])
        #expect(throws: RLXError.self) { try tensor.scalars(as: Int32.self) }
        #expect(try Tensor(Int32(7)).scalars(as: Int32.self) == [7])
        #expect(Tensor(true).shape == [])
        #expect(try Tensor([Float](), shape: [0, 4]).count == 0)
        #expect(try Tensor([1, 2] as [Int32], shape: [2]) == Tensor([1, 2] as [Int32], shape: [2]))
    }

    @Test func mistakes() {
        func code(_ shape: [Int]) -> RLXError.Code? {
            do throws(RLXError) {
                _ = try Tensor([1, 2] as [Float], shape: shape)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code([3]) == .badShape)
        #expect(code([-1, -2]) == .badShape)
        #expect(code([.max, .max]) == .badShape)
        #expect(code([2, 1]) == nil)
    }

    @Test func multiArrays() throws {
        let tensor = try Tensor([1, 2, 3, 4, 5, 6] as [Float], shape: [2, 3])
        let array = try tensor.multiArray()
        #expect(array.shape == [2, 3])
        #expect(array[4] == 5)
        #expect(try Tensor(array) == tensor)
        var memory: [Int32] = [1, 2, 3, 4, 5, 6, 7, 8]
        try memory.withUnsafeMutableBytes { bytes in
            let padded = try MLMultiArray(
                dataPointer: #require(bytes.baseAddress), shape: [2, 2], dataType: .int32, strides: [4, 1])
            #expect(try Tensor(padded) == Tensor([1, 2, 5, 6] as [Int32], shape: [2, 2]))
        }
        #expect(try Tensor(Float(3)).multiArray().shape == [1])
        #expect(throws: RLXError.self) { try Tensor(true).multiArray() }
        #expect(throws: RLXError.self) { try Tensor(MLMultiArray(shape: [1], dataType: .double)) }
    }

    @Test func stores() throws {
        let store = TensorStore()
        let tensor = try Tensor([1, 2] as [Int32], shape: [2, 1])
        try store.put("a", tensor)
        #expect(try store.get("a") == tensor)
        #expect(store.names == ["a"])
        let error = #expect(throws: RLXError.self) { try store.put("a", Tensor([1, 2] as [Int32], shape: [2])) }
        #expect(error == RLXError(.badShape, "'a' has shape (2, 1), not (2,)", subject: "a"))
    }
}
