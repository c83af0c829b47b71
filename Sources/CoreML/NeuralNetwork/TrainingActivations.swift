// Activations with their derivatives, one number at a time.
import Foundation
import MILFormat

/// The slope is told from both the argument and the value.
struct ActivationFunction {
    let value: (Float) -> Float
    let slope: (_ x: Float, _ y: Float) -> Float
}

final class ActivationTraining: TrainingLayer {
    private let function: ActivationFunction
    private var x: [Float] = []
    private var y: [Float] = []

    init(_ function: ActivationFunction) { self.function = function }

    func forward(_ x: [Float], samples: Int) -> [Float] {
        self.x = x
        y = x.map(function.value)
        return y
    }

    func backward(_ gradient: [Float], samples: Int) -> [Float] {
        gradient.indices.map { gradient[$0] * function.slope(x[$0], y[$0]) }
    }
}

extension NetworkLayer.Activation {
    /// Nil for those with weights of their own.
    var function: ActivationFunction? {
        switch self {
        case .linear(let alpha, let beta): .init(value: { alpha * $0 + beta }, slope: { _, _ in alpha })
        case .relu: .init(value: { $0 < 0 ? 0 : $0 }, slope: { x, _ in x > 0 ? 1 : 0 })
        case .leakyReLU(let alpha): .init(value: { $0 < 0 ? alpha * $0 : $0 }, slope: { x, _ in x < 0 ? alpha : 1 })
        case .thresholdedReLU(let alpha): .init(value: { $0 < alpha ? 0 : $0 }, slope: { x, _ in x < alpha ? 0 : 1 })
        case .tanh: .init(value: { Foundation.tanh($0) }, slope: { _, y in 1 - y * y })
        case .scaledTanh(let alpha, let beta):
            .init(
                value: { alpha * Foundation.tanh(beta * $0) },
                slope: { x, _ in
                    let inner = Foundation.tanh(beta * x)
                    return alpha * beta * (1 - inner * inner)
                })
        case .sigmoid: .init(value: { 1 / (1 + exp(-$0)) }, slope: { _, y in y * (1 - y) })
        case .hardSigmoid(let alpha, let beta):
            .init(
                value: { Swift.min(Swift.max(alpha * $0 + beta, 0), 1) }, slope: { _, y in y > 0 && y < 1 ? alpha : 0 })
        case .elu(let alpha):
            .init(value: { $0 < 0 ? alpha * (exp($0) - 1) : $0 }, slope: { x, y in x < 0 ? y + alpha : 1 })
        case .softsign: .init(value: { $0 / (1 + abs($0)) }, slope: { x, _ in 1 / ((1 + abs(x)) * (1 + abs(x))) })
        case .softplus: .init(value: { log1p(exp(-abs($0))) + Swift.max($0, 0) }, slope: { x, _ in 1 / (1 + exp(-x)) })
        case .prelu, .parametricSoftplus: nil
        }
    }
}
