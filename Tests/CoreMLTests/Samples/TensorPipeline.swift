// What comes before and after a model, with tensors and shaped arrays, as apps write it.
import CoreML

@available(macOS 15, iOS 18, *)
struct TensorPipeline {
    let model: MLModel

    /// Rows moved to mean zero and deviation one, through the model, as probabilities of the last row.
    func probabilities(_ rows: [[Float]]) async throws -> [Float] {
        let x = MLTensor(rows.map { MLTensor($0) }, alongAxis: 0)
        let mean = x.mean(alongAxes: -1, keepRank: true)
        let deviation = (x - mean).squared().mean(alongAxes: -1, keepRank: true).squareRoot()
        let normalized = (x - mean) / (deviation + 1e-6)
        let outputs = try await withMLTensorComputePolicy(.cpuOnly) {
            try await model.prediction(from: ["x": normalized])
        }
        guard let y = outputs["y"] else { return [] }
        let probabilities = y[-1].softmax()
        return await probabilities.shapedArray(of: Float.self).scalars
    }

    /// The index of the largest logit of the last position, without a copy of the logits.
    static func next<A: MLShapedArrayProtocol>(after logits: A) -> Int where A.Scalar == Float {
        let last = logits[[logits.shape[0] - 1]]
        return last.withUnsafeShapedBufferPointer { buffer, shape, strides in
            var best = 0
            for index in 1..<shape[0] where buffer[index * strides[0]] > buffer[best * strides[0]] { best = index }
            return best
        }
    }

    /// The mask of attention to what came before.
    static func causalMask(_ count: Int) -> MLShapedArray<Float> {
        var mask = MLShapedArray<Float>(repeating: 0, shape: [1, 1, count, count])
        for row in 0..<count where row + 1 < count {
            mask[0, 0, row][(row + 1)...].fill(with: -.infinity)
        }
        return mask
    }
}
