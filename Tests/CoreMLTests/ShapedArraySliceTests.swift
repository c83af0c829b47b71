// Slices are views until someone writes; what is written to a copy stays there.
import CoreML
import Testing

@Suite struct ShapedArraySliceTests {
    private let array = MLShapedArray<Float>(scalars: (0..<24).map(Float.init), shape: [2, 3, 4])

    @Test func parts() {
        #expect(array[1].shape == [3, 4])
        #expect(array[1][2].scalars == [20, 21, 22, 23])
        #expect(array[1, 2].scalars == [20, 21, 22, 23])
        #expect(array[1, 2, 3].scalar == 23)
        #expect(array[0..<2, 1..<2, 1..<3].scalars == [5, 6, 17, 18])
        #expect(array[1..., ...0, ..<2].shape == [1, 1, 2])
        #expect(array[1..., ...0, ..<2].scalars == [12, 13])
        #expect(array[0..<1].shape == [1, 3, 4])
        #expect(array[...].scalars == array.scalars)
        #expect(array[[0..<1, 2..<3]].scalars == [8, 9, 10, 11])
        #expect(array[1][0..<3, 1..<2].scalars == [13, 17, 21])
        #expect(array[0..<0].scalars.isEmpty)
    }

    @Test func areCollections() {
        #expect(array.map(\.scalarCount) == [12, 12])
        #expect(array.indices == 0..<2)
        #expect(array.reversed().first?.first?.scalars == [12, 13, 14, 15])
        #expect(array[1].flatMap(\.scalars) == array.scalars.suffix(12))
        func total<A: MLShapedArrayProtocol>(_ array: A) -> Float where A.Scalar == Float {
            array.scalars.reduce(0, +)
        }
        #expect(total(array) == 276)
        #expect(total(array[0, 0]) == 6)
        let literal: MLShapedArray<Int32> = [1, 2, 3]
        #expect(literal.shape == [3])
    }

    /// Looking does not copy, writing to one of two does.
    @Test func shareMemoryUntilWritten() {
        var copy = array
        func address(_ array: MLShapedArray<Float>) -> UnsafePointer<Float>? {
            array.withUnsafeShapedBufferPointer { buffer, _, _ in buffer.baseAddress }
        }
        let row = array[1, 2]
        let place = row.withUnsafeShapedBufferPointer { buffer, shape, strides in
            #expect(shape == [4] && strides == [1] && buffer.count == 4)
            return buffer.baseAddress
        }
        #expect(address(copy) == address(array))
        #expect(place == address(array).map { $0 + 20 })
        copy[scalarAt: 1, 2, 0] = -1
        #expect(address(copy) != address(array))
        #expect(row.scalars == [20, 21, 22, 23] && array[scalarAt: 1, 2, 0] == 20)
        let before = address(copy)
        copy[0] = MLShapedArraySlice(repeating: 7, shape: [3, 4])
        #expect(address(copy) == before)
        #expect(copy[0].scalars.allSatisfy { $0 == 7 } && copy[scalarAt: 1, 2, 0] == -1)
        var slice = copy[1][0..<2]
        slice.fill(with: [1, 2])
        #expect(slice.scalars == [1, 2, 1, 2, 1, 2, 1, 2])
        copy[1][0][scalarAt: 3] = 9
        #expect(copy[scalarAt: 1, 0, 3] == 9 && slice[scalarAt: 0, 3] == 2)
        copy[0..<2, 1..<2, 0..<1].fill(with: 5)
        #expect(copy[scalarAt: 0, 1, 0] == 5 && copy[scalarAt: 1, 1, 0] == 5 && copy[scalarAt: 0, 1, 1] == 7)
    }

    /// Written values go to memory of its own, and the foreign bytes are given back.
    @Test func foreignMemory() {
        var values: [Float] = [0, 1, 2, 3, 4, 5, 6, 7]
        var released = 0
        values.withUnsafeMutableBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            var array = MLShapedArray<Float>(
                bytesNoCopy: base, shape: [2, 3], strides: [4, 1], deallocator: .custom { _, _ in released += 1 })
            #expect(array.scalars == [0, 1, 2, 4, 5, 6])
            array.withUnsafeShapedBufferPointer { buffer, _, _ in
                #expect(UnsafeRawPointer(buffer.baseAddress) == UnsafeRawPointer(base))
            }
            #expect(released == 0)
            array[scalarAt: 0, 0] = 9
            #expect(released == 1 && array.scalars == [9, 1, 2, 4, 5, 6])
        }
        #expect(values[0] == 0)
    }

    @Test func layouts() throws {
        let matrix = MLShapedArray<Float>(scalars: [1, 2, 3, 4, 5, 6], shape: [2, 3])
        var columns = matrix.changingLayout(to: .lastMajorContiguous)
        #expect(columns.strides == [1, 2] && columns == matrix)
        #expect(columns.withUnsafeShapedBufferPointer { buffer, _, _ in Array(buffer) } == [1, 4, 2, 5, 3, 6])
        columns.withUnsafeMutableShapedBufferPointer(using: .strides([4, 1])) { buffer, shape, strides in
            #expect(shape == [2, 3] && strides == [4, 1] && buffer.count == 7)
            buffer[4] = -4
        }
        #expect(columns.scalars == [1, 2, 3, -4, 5, 6] && columns.strides == [4, 1])
        #expect(matrix.transposed().scalars == [1, 4, 2, 5, 3, 6])
        #expect(matrix.expandingShape(at: 1).shape == [2, 1, 3] && matrix[0].expandingShape(at: 1).shape == [3, 1])
        #expect(columns[0..<2, 1..<2].reshaped(to: [2]).scalars == [2, 5])
        let joined = MLShapedArray(concatenating: [matrix[0..<2, 0..<1], columns[0..<2, 1..<3]], alongAxis: 1)
        #expect(joined.shape == [2, 3] && joined.scalars == [1, 2, 3, 4, 5, 6])
        #expect(MLShapedArray<Int32>(converting: matrix[1]).scalars == [4, 5, 6])
        #expect(MLMultiArray(columns[0..<2, 0..<1]).strides == [1, 1])
        #expect(MLShapedArray<Double>(identityMatrixOfSize: 2).scalars == [1, 0, 0, 1])
        #expect(MLShapedArray<Int32>(randomScalarsIn: 3..<5, shape: [9]).scalars.allSatisfy { $0 == 3 || $0 == 4 })
        let coded = try JSONDecoder().decode(
            MLShapedArray<Float>.self, from: JSONEncoder().encode(columns))
        #expect(coded == columns)
        let damaged = Data(#"{"shape": [4611686018427387904, 4], "scalars": [1]}"#.utf8)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(MLShapedArray<Float>.self, from: damaged) }
    }
}
