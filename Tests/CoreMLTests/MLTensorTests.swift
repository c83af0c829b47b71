import CoreML
import Testing

@Suite struct MLTensorTests {
    private func floats(_ tensor: MLTensor) async -> [Float] { await tensor.shapedArray(of: Float.self).scalars }

    @Test func arithmetic() async {
        let a = MLTensor(shape: [2, 3], scalars: [1, 2, 3, 4, 5, 6] as [Float])
        let b = MLTensor([10, 20, 30] as [Float])
        #expect(await floats(a + b) == [11, 22, 33, 14, 25, 36])
        #expect(await floats(a * 2.0 - 1.0) == [1, 3, 5, 7, 9, 11])
        #expect((a .> 3.0).scalarType == Bool.self)
        #expect(await floats((a .> 3.0).cast(to: Float.self)) == [0, 0, 0, 1, 1, 1])
        #expect(await (MLTensor([7, -7] as [Int32]) / 2).shapedArray(of: Int32.self).scalars == [3, -3])
        #expect(await floats(MLTensor([0.1] as [Float]) + 0.2) == [Float(0.1) + Float(0.2)])
    }

    @Test func productsAndReductions() async {
        let a = MLTensor(shape: [2, 2], scalars: [1, 2, 3, 4] as [Float])
        let b = MLTensor(shape: [2, 3], scalars: [1, 0, 2, 0, 1, 3] as [Float])
        let product = a.matmul(b)
        #expect(product.shape == [2, 3])
        #expect(await floats(product) == [1, 2, 8, 3, 4, 18])
        #expect(await floats(product.sum(alongAxes: 0)) == [4, 6, 26])
        #expect(await floats(product.mean(alongAxes: 0, 1)) == [6])
        #expect(product.max(alongAxes: 1, keepRank: true).shape == [2, 1])
        #expect(await product.argmax(alongAxis: 1).shapedArray(of: Int32.self).scalars == [2, 2])
        let soft = await floats(MLTensor([0, 0, 0] as [Float]).softmax())
        #expect(soft.allSatisfy { abs($0 - 1 / 3) < 1e-7 })
        let (values, indices) = MLTensor([3, 9, 1, 9] as [Float]).topK(2)
        #expect(await floats(values) == [9, 9])
        #expect(await indices.shapedArray(of: Int32.self).scalars == [1, 3])
    }

    @Test func shapes() async {
        let a = MLTensor(shape: [2, 3], scalars: [1, 2, 3, 4, 5, 6] as [Float])
        #expect(await floats(a.transposed()) == [1, 4, 2, 5, 3, 6])
        #expect(await floats(MLTensor(concatenating: [a, a], alongAxis: 1)) == [1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6])
        #expect(MLTensor(stacking: [a, a, a]).shape == [3, 2, 3])
        let parts = a.split(count: 3, alongAxis: 1)
        #expect(parts.count == 3 && parts[1].shape == [2, 1])
        #expect(await floats(parts[1]) == [2, 5])
        #expect(await floats(a.gathering(atIndices: [1, 0], alongAxis: 0)) == [4, 5, 6, 1, 2, 3])
        #expect(a.expandingShape(at: 0).squeezingShape().shape == a.shape)
        #expect(MLTensor(zeros: [2], scalarType: Float16.self).scalarCount == 2)
        let literal: MLTensor = [1.0, 2.0]
        #expect(literal.shape == [2])
    }

    @Test func subscripts() async {
        let a = MLTensor(rangeFrom: 0, to: 24, by: 1).reshaped(to: [2, 3, 4])
        #expect(await floats(a[1, 2]) == [20, 21, 22, 23])
        #expect(await floats(a[..., 0]) == [0, 4, 8, 12, 16, 20])
        #expect(await floats(a[0, 1..., ..<1]) == [4, 8])
        #expect(a[0, 1..., ..<1].shape == [2, 1])
        #expect(a[.newAxis, 0].shape == [1, 3, 4] && a[nil, 1, ..., 0].shape == [1, 3])
        #expect(await floats(a[-1, 0, .range(0..<4, stride: 2)]) == [12, 14])
        #expect(await floats(a[1, ..., -1]) == [15, 19, 23])
    }

    /// Against NumPy by hand.
    @Test func everythingElse() async {
        let a = MLTensor(shape: [2, 3], scalars: [3, -1, 2, 0, 5, 4] as [Float])
        #expect(await floats(a.cumulativeSum(alongAxis: 1)) == [3, 2, 4, 0, 5, 9])
        #expect(await floats(a.cumulativeProduct()) == [3, -1, 2, 0, -5, 8])
        #expect(await a.argsort().shapedArray(of: Int32.self).scalars == [1, 2, 0, 0, 2, 1])
        #expect(
            await a.argsort(alongAxis: 0, descendingOrder: true).shapedArray(of: Int32.self).scalars == [
                0, 1, 1, 1, 0, 0,
            ])
        #expect(await a.argmin().shapedArray(of: Int32.self).scalar == 1)
        #expect(await floats(a.product(alongAxes: [0])) == [0, -5, 8])
        #expect(await (a .> 0).all(alongAxes: 1).shapedArrayOfBools() == [false, false])
        #expect(await floats(a.replacing(with: 9 as Float, where: a .< 1)) == [3, 9, 2, 9, 5, 4])
        #expect(await floats(a.clamped(to: 0...3)) == [3, 0, 2, 0, 3, 3])
        #expect(await floats(a.reversed(alongAxes: 1)) == [2, -1, 3, 4, 5, 0])
        #expect(await floats(a.tiled(multiples: [1, 2])) == [3, -1, 2, 3, -1, 2, 0, 5, 4, 0, 5, 4])
        #expect(await floats(a.bandPart(lowerBandCount: 0, upperBandCount: -1)) == [3, -1, 2, 0, 5, 4])
        #expect(await floats(a.bandPart(lowerBandCount: -1, upperBandCount: 0)) == [3, 0, 0, 0, 5, 0])
        let row = MLTensor([1, 2, 3] as [Float])
        #expect(await floats(row.padded(forSizes: [(2, 1)], mode: .reflection)) == [3, 2, 1, 2, 3, 2])
        #expect(await floats(row.padded(forSizes: [(2, 1)], mode: .symmetric)) == [2, 1, 1, 2, 3, 3])
        #expect(await floats(row.padded(forSizes: [(1, 1)], with: 7)) == [7, 1, 2, 3, 7])
        #expect(await floats(row.pow(2) % 4) == [1, 0, 1])
        #expect(await floats(pointwiseMax(row, 2.0)) == [2, 2, 3])
        #expect(await floats(row.matmul(a.transposed())) == [7, 22])
        let indices = MLTensor(shape: [2, 2], scalars: [0, 1, 1, 2] as [Int32])
        #expect(await floats(a.gathering(atIndices: indices)) == [-1, 4])
        let filled = a.replacing(atIndices: [0, 2], with: 1 as Float, alongAxis: 1)
        #expect(await floats(filled) == [1, -1, 1, 1, 5, 1])
        #expect(await floats(MLTensor(linearSpaceFrom: 0, through: 1, count: 3)) == [0, 0.5, 1])
        let image = MLTensor(shape: [2, 2], scalars: [0, 1, 2, 3] as [Float])
        #expect(await floats(image.resized(to: (2, 4))) == [0, 0, 1, 1, 2, 2, 3, 3])
        #expect(await floats(image.resized(to: (3, 2), method: .bilinear(alignCorners: true))) == [0, 1, 1, 2, 2, 3])
        let seeded = MLTensor(randomNormal: [100], seed: 3, scalarType: Float.self)
        #expect(await floats(seeded) == floats(MLTensor(randomNormal: [100], seed: 3, scalarType: Float.self)))
        let made = MLTensor(unsafeUninitializedShape: [2], scalarType: Int16.self) { bytes in
            bytes.copyBytes(from: [1, 0, 2, 0] as [UInt8])
        }
        #expect(await floats(made.cast(like: row)) == [1, 2])
    }

    @Test func predictions() async throws {
        let model = try await MLModel.load(contentsOf: MLModel.compileModel(at: Fixture.url("linear32")))
        let x = MLTensor(shape: [2, 4], scalars: [1, 2, 3, 4, -1, 0.5, 0, 2] as [Float])
        let y = try #require(
            try await withMLTensorComputePolicy(.cpuOnly) { try await model.prediction(from: ["x": x]) }["y"])
        #expect(await floats(y) == Fixture.product([1, 2, 3, 4, -1, 0.5, 0, 2]).map { $0 + 0.5 })
    }
}

extension MLTensor {
    fileprivate func shapedArrayOfBools() async -> [Bool] {
        await cast(to: Int32.self).shapedArray(of: Int32.self).scalars.map { $0 != 0 }
    }
}
