// One update task's numbers: forward, loss, backward and the optimizer's step. Knows no tasks and no handlers.
import Foundation
import MILFormat

/// A sample's input and what the network should make of it.
struct TrainingSample {
    enum Target {
        case index(Int)
        case values([Float])
    }

    let input: [Float]
    let target: Target
}

final class NetworkTrainer {
    private let network: UpdatableNetwork
    private let layers: [any TrainingLayer]
    private let trained: [TrainedParameter]
    private var steps = 0

    init(_ network: UpdatableNetwork) throws {
        self.network = network
        layers = try network.path.map { try $0.trainingLayer(network.graph) }
        trained = zip(network.path, layers).filter { $0.0.layer.isUpdatable }.flatMap { $0.1.parameters }
    }

    /// One step; returns the mini-batch's mean loss before it.
    func step(_ samples: [TrainingSample], _ parameters: Hyperparameters) -> Double {
        var values = samples.flatMap(\.input)
        for layer in layers { values = layer.forward(values, samples: samples.count) }
        var (loss, gradient) =
            network.loss.kind == .meanSquaredError
            ? Self.squaredError(values, samples) : Self.crossEntropy(values, samples)
        for index in layers.indices[network.firstUpdatable...].reversed() {
            gradient = layers[index].backward(gradient, samples: samples.count)
        }
        steps += 1
        for parameter in trained { parameter.step(network.optimizer, parameters, steps) }
        loss /= Double(samples.count)
        return loss
    }

    var weights: [String: LayerWeights] {
        var result: [String: LayerWeights] = [:]
        for parameter in trained {
            if parameter.isBias {
                result[parameter.layer, default: LayerWeights()].bias = parameter.values
            } else {
                result[parameter.layer, default: LayerWeights()].weights = parameter.values
            }
        }
        return result
    }

    /// Of the softmax of `logits`. The loss is a sum over samples, the gradient that of the mean.
    private static func crossEntropy(_ logits: [Float], _ samples: [TrainingSample]) -> (Double, [Float]) {
        let classes = logits.count / samples.count
        var gradient = logits
        var loss = 0.0
        for (row, sample) in samples.enumerated() {
            guard case .index(let target) = sample.target else { continue }
            let range = row * classes..<(row + 1) * classes
            let largest = logits[range].max() ?? 0
            let exponentials = logits[range].map { exp($0 - largest) }
            let sum = exponentials.reduce(0, +)
            loss += Double(log(sum) + largest - logits[row * classes + target])
            for (index, value) in exponentials.enumerated() {
                gradient[row * classes + index] = (value / sum - (index == target ? 1 : 0)) / Float(samples.count)
            }
        }
        return (loss, gradient)
    }

    /// The mean over elements, summed over samples.
    private static func squaredError(_ values: [Float], _ samples: [TrainingSample]) -> (Double, [Float]) {
        let size = values.count / samples.count
        var gradient = values
        var loss = 0.0
        for (row, sample) in samples.enumerated() {
            guard case .values(let target) = sample.target else { continue }
            var sum: Float = 0
            for (index, expected) in target.enumerated() {
                let difference = values[row * size + index] - expected
                sum += difference * difference
                gradient[row * size + index] = 2 * difference / Float(values.count)
            }
            loss += Double(sum / Float(size))
        }
        return (loss, gradient)
    }
}

extension TrainedParameter {
    fileprivate func step(_ optimizer: NetworkUpdates.Optimizer, _ parameters: Hyperparameters, _ count: Int) {
        switch optimizer {
        case .sgd: momentumStep(parameters.real(.learningRate), parameters.real(.momentum))
        case .adam: adamStep(parameters, count)
        }
    }

    private func momentumStep(_ rate: Float, _ momentum: Float) {
        if moments.isEmpty { moments = [Array(repeating: 0, count: values.count)] }
        for index in values.indices {
            moments[0][index] = momentum * moments[0][index] + gradient[index]
            values[index] -= rate * moments[0][index]
        }
    }

    private func adamStep(_ parameters: Hyperparameters, _ count: Int) {
        if moments.isEmpty { moments = Array(repeating: Array(repeating: 0, count: values.count), count: 2) }
        let (beta1, beta2) = (parameters.real(.beta1), parameters.real(.beta2))
        let (rate, eps) = (parameters.real(.learningRate), parameters.real(.eps))
        let scale = Float(1 - pow(Double(beta1), Double(count)))
        let rootScale = Float(1 / (1 - pow(Double(beta2), Double(count))).squareRoot())
        for index in values.indices {
            let g = gradient[index]
            moments[0][index] = beta1 * moments[0][index] + (1 - beta1) * g
            moments[1][index] = beta2 * moments[1][index] + (1 - beta2) * g * g
            values[index] -= rate / scale * moments[0][index] / (moments[1][index].squareRoot() * rootScale + eps)
        }
    }
}
