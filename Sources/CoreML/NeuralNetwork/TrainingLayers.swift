// What training needs of each kind of layer: its values for a batch, and the gradients that come back.
import MILFormat

/// Numbers that an update changes, with their gradient.
final class TrainedParameter {
    let layer: String
    let isBias: Bool
    let shape: [Int]
    var values: [Float]
    var gradient: [Float]
    /// What the optimizer keeps between mini-batches of one task.
    var moments: [[Float]] = []

    init(layer: String, isBias: Bool, shape: [Int], values: [Float]) {
        self.layer = layer
        self.isBias = isBias
        self.shape = shape
        self.values = values
        gradient = Array(repeating: 0, count: values.count)
    }
}

/// One layer over batches of samples that lie one after the other.
protocol TrainingLayer: AnyObject {
    /// Weights first, then the bias.
    var parameters: [TrainedParameter] { get }
    func forward(_ x: [Float], samples: Int) -> [Float]
    /// After `forward`, for the gradient of its result: sets the parameters' gradients, returns that of `x`.
    func backward(_ gradient: [Float], samples: Int) -> [Float]
}

extension TrainingLayer {
    var parameters: [TrainedParameter] { [] }
}

extension NetworkNode {
    func trainingLayer(_ graph: NetworkGraph) throws -> any TrainingLayer {
        switch operation {
        case .product(let lead, let input, let output, let weights, let bias):
            return ProductTraining(layer.name, lead: lead, input: input, output: output, weights: weights, bias: bias)
        case .convolution(let windows, let groups, let weights, let bias):
            return ConvolutionTraining(layer.name, windows, groups: groups, weights: weights, bias: bias)
        case .pooling(let windows, let pooling):
            guard pooling.kind != .l2 else { throw layer.unsupported("L2 pooling in training") }
            return PoolingTraining(windows, pooling)
        case .activation(let activation):
            guard let function = activation.function else { throw layer.unsupported("the activation in training") }
            return ActivationTraining(function)
        case .reshape: return PassingTraining()
        case .softmax, .flattenChannelsLast: throw layer.unsupported("the layer in training")
        }
    }
}

private final class PassingTraining: TrainingLayer {
    func forward(_ x: [Float], samples: Int) -> [Float] { x }
    func backward(_ gradient: [Float], samples: Int) -> [Float] { gradient }
}

private final class PoolingTraining: TrainingLayer {
    private let windows: NetworkWindows
    private let isMaximum: Bool
    /// What each mean is over.
    private var divisors: [Float]
    /// Where each maximum came from.
    private var sources: [Int] = []
    private var inputCount = 0

    init(_ windows: NetworkWindows, _ pooling: NetworkLayer.Pooling) {
        self.windows = windows
        isMaximum = pooling.kind == .maximum
        divisors = Array(repeating: 0, count: windows.outputPlane)
        windows.forEachElement { out, _, _ in divisors[out] += 1 }
        if !pooling.excludesPadding {
            divisors = Array(repeating: Float(windows.kernel[0] * windows.kernel[1]), count: windows.outputPlane)
        }
    }

    private func planes(_ samples: Int) -> Int { samples * windows.lead * windows.output[0] }

    func forward(_ x: [Float], samples: Int) -> [Float] {
        inputCount = x.count
        let size = windows.outputPlane
        var y = [Float](repeating: isMaximum ? -.infinity : 0, count: planes(samples) * size)
        sources = isMaximum ? Array(repeating: -1, count: y.count) : []
        for plane in 0..<planes(samples) {
            windows.forEachElement { out, _, inside in
                let (to, from) = (plane * size + out, plane * windows.inputPlane + inside)
                if !isMaximum {
                    y[to] += x[from] / divisors[out]
                } else if x[from] > y[to] || x[from].isNaN || sources[to] < 0 {
                    y[to] = x[from]
                    sources[to] = from
                }
            }
        }
        return y
    }

    func backward(_ gradient: [Float], samples: Int) -> [Float] {
        var back = [Float](repeating: 0, count: inputCount)
        if isMaximum {
            for (out, source) in sources.enumerated() where source >= 0 { back[source] += gradient[out] }
            return back
        }
        for plane in 0..<planes(samples) {
            windows.forEachElement { out, _, inside in
                back[plane * windows.inputPlane + inside] += gradient[plane * windows.outputPlane + out] / divisors[out]
            }
        }
        return back
    }
}

extension NetworkWindows {
    var inputPlane: Int { input[1] * input[2] }
    var outputPlane: Int { output[1] * output[2] }

    /// Every element of every window that lies inside the plane: window, place in the kernel, place in the plane.
    func forEachElement(_ body: (Int, Int, Int) -> Void) {
        for row in 0..<output[1] {
            for column in 0..<output[2] {
                for i in 0..<kernel[0] {
                    let y = row * strides[0] + i * dilations[0] - top
                    guard (0..<input[1]).contains(y) else { continue }
                    for j in 0..<kernel[1] {
                        let x = column * strides[1] + j * dilations[1] - left
                        guard (0..<input[2]).contains(x) else { continue }
                        body(row * output[2] + column, i * kernel[1] + j, y * input[2] + x)
                    }
                }
            }
        }
    }
}
