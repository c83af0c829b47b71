// A NeuralNetwork model as plain values: the layers that we run, and how its weights may be updated.

public struct NeuralNetwork: Sendable, Hashable {
    public enum ClassLabels: Sendable, Hashable { case strings([String]), integers([Int64]) }

    public var layers: [NetworkLayer] = []
    /// Images are scaled or centred first.
    public var hasPreprocessing = false
    /// Array inputs become (1, 1, C, H, W), as all did before version 4; otherwise they keep their shape.
    public var mapsToRankFive = true
    public var updates: NetworkUpdates?
    public var classLabels: ClassLabels?
    /// The value with the classes' probabilities; empty: the last layer's.
    public var probabilitiesName = ""

    public init() {}
}

public struct NetworkLayer: Sendable, Hashable {
    public enum Kind: Sendable, Hashable {
        case convolution(Convolution)
        case innerProduct(InnerProduct)
        case pooling(Pooling)
        case activation(Activation)
        case softmax
        case flatten(channelsLast: Bool)
        case reshape([Int], channelsLast: Bool)
        /// By the number of its field; recognised and not decoded.
        case other(Int)
    }

    public var name = ""
    public var inputs: [String] = []
    public var outputs: [String] = []
    public var isUpdatable = false
    public var kind = Kind.other(0)

    public init() {}

    public enum Padding: Sendable, Hashable {
        /// Before and after the rows and the columns.
        case valid(top: Int, bottom: Int, left: Int, right: Int)
        case same(topLeftHeavy: Bool)
        case includeLastPixel
    }

    public struct Convolution: Sendable, Hashable {
        public var outputChannels = 0
        public var kernelChannels = 0
        public var groups = 1
        public var kernel = [3, 3]
        public var strides = [1, 1]
        public var dilations = [1, 1]
        public var padding = Padding.valid(top: 0, bottom: 0, left: 0, right: 0)
        public var isTransposed = false
        /// [out, in / groups, rows, columns]
        public var weights = NetworkWeights()
        public var bias: NetworkWeights?
    }

    public struct InnerProduct: Sendable, Hashable {
        public var inputChannels = 0
        public var outputChannels = 0
        /// [out, in]
        public var weights = NetworkWeights()
        public var bias: NetworkWeights?
    }

    public struct Pooling: Sendable, Hashable {
        public enum Kind: Int32, Sendable { case maximum, average, l2 }

        public var kind = Kind.maximum
        public var kernel = [3, 3]
        public var strides = [1, 1]
        public var padding = Padding.valid(top: 0, bottom: 0, left: 0, right: 0)
        public var excludesPadding = false
        public var isGlobal = false
    }

    public enum Activation: Sendable, Hashable {
        case linear(alpha: Float, beta: Float)
        case relu
        case leakyReLU(alpha: Float)
        case thresholdedReLU(alpha: Float)
        case prelu(alpha: [Float])
        case tanh
        case scaledTanh(alpha: Float, beta: Float)
        case sigmoid
        case hardSigmoid(alpha: Float, beta: Float)
        case elu(alpha: Float)
        case softsign
        case softplus
        case parametricSoftplus(alpha: [Float], beta: [Float])
    }
}

public struct NetworkWeights: Sendable, Hashable {
    public enum Values: Sendable, Hashable {
        case floats([Float])
        /// Little-endian IEEE halves, two bytes each.
        case halves([UInt8])
        /// Quantised or raw.
        case other
    }

    public var values = Values.floats([])
    public var isUpdatable = false
}

/// `NetworkUpdateParameters`: what may be trained and how.
public struct NetworkUpdates: Sendable, Hashable {
    public enum LossKind: Sendable, Hashable { case categoricalCrossEntropy, meanSquaredError }

    public struct Loss: Sendable, Hashable {
        public var name = ""
        public var kind: LossKind?
        public var input = ""
        public var target = ""
    }

    public enum Optimizer: Sendable, Hashable {
        case sgd(learningRate: RealParameter?, miniBatchSize: IntegerParameter?, momentum: RealParameter?)
        case adam(
            learningRate: RealParameter?, miniBatchSize: IntegerParameter?, beta1: RealParameter?,
            beta2: RealParameter?, eps: RealParameter?)
    }

    public struct RealParameter: Sendable, Hashable {
        public var defaultValue = 0.0
        public var minimum: Double?
        public var maximum: Double?
    }

    public struct IntegerParameter: Sendable, Hashable {
        public var defaultValue: Int64 = 0
        public var minimum: Int64?
        public var maximum: Int64?
        /// What it may be; nil: anything within the range.
        public var allowed: [Int64]?
    }

    public var losses: [Loss] = []
    public var optimizer: Optimizer?
    public var epochs: IntegerParameter?
    public var shuffle: Bool?
    public var seed: IntegerParameter?
}
