// What a model says of itself beside its program: version, kind, and the features that it takes and gives.

public struct Model: Sendable, Hashable {
    public enum Content: Sendable, Hashable {
        case program(Program)
        /// Of one of three kinds: plain, classifier or regressor.
        case network(NeuralNetwork)
        /// Recognised and not decoded.
        case other(ModelKind)
    }

    public var specificationVersion: Int32
    public var isUpdatable: Bool
    public var description: ModelDescription
    public var content: Content

    public init(
        specificationVersion: Int32, isUpdatable: Bool = false, description: ModelDescription, content: Content
    ) {
        self.specificationVersion = specificationVersion
        self.isUpdatable = isUpdatable
        self.description = description
        self.content = content
    }
}

/// Kinds of model; raw values are the field numbers of `Model.proto`'s `Type`.
public enum ModelKind: Int, Sendable, CaseIterable {
    case pipelineClassifier = 200, pipelineRegressor, pipeline
    case glmRegressor = 300, supportVectorRegressor, treeEnsembleRegressor, neuralNetworkRegressor
    case bayesianProbitRegressor
    case glmClassifier = 400, supportVectorClassifier, treeEnsembleClassifier, neuralNetworkClassifier
    case kNearestNeighborsClassifier
    case neuralNetwork = 500, itemSimilarityRecommender, mlProgram
    case customModel = 555, linkedModel
    case classConfidenceThresholding = 560
    case oneHotEncoder = 600, imputer, featureVectorizer, dictVectorizer, scaler
    case categoricalMapping = 606, normalizer
    case arrayFeatureExtractor = 609, nonMaximumSuppression
    case identity = 900
    case textClassifier = 2000, wordTagger, visionFeaturePrint, soundAnalysisPreprocessing, gazetteer, wordEmbedding
    case audioFeaturePrint
    case serializedModel = 3000
}

public struct ModelDescription: Sendable, Hashable {
    /// One entry for a model of several functions and for the function `main` of all others.
    public var functions: [FunctionDescription] = []
    public var defaultFunctionName = ""
    public var trainingInputs: [FeatureDescription] = []
    public var metadata = Metadata()
    /// Whether the file lists its functions, or describes the only one directly.
    public var isMultifunction = false

    public init() {}
}

public struct FunctionDescription: Sendable, Hashable {
    public var name: String
    public var inputs: [FeatureDescription] = []
    public var outputs: [FeatureDescription] = []
    public var states: [FeatureDescription] = []
    public var predictedFeatureName = ""
    public var predictedProbabilitiesName = ""

    public init(name: String) { self.name = name }
}

public struct Metadata: Sendable, Hashable {
    public var shortDescription = ""
    public var versionString = ""
    public var author = ""
    public var license = ""
    public var userDefined: [String: String] = [:]

    public init() {}
}

public struct FeatureDescription: Sendable, Hashable {
    public var name: String
    public var shortDescription: String
    public var type: FeatureType
    public var isOptional: Bool

    public init(name: String, shortDescription: String = "", type: FeatureType, isOptional: Bool = false) {
        self.name = name
        self.shortDescription = shortDescription
        self.type = type
        self.isOptional = isOptional
    }
}

public enum FeatureType: Sendable, Hashable {
    case int64, double, string
    case image(ImageFeature)
    case multiArray(ArrayFeature)
    case dictionary(key: ScalarKind)
    /// Lengths from `minimum` on; no `maximum` means any.
    case sequence(of: ScalarKind, minimum: Int, maximum: Int?)
    case state(ArrayFeature)

    /// What keys of dictionaries and elements of sequences are.
    public enum ScalarKind: Sendable, Hashable { case int64, string }
}

/// Element types of array features; raw values are those of `ArrayFeatureType.ArrayDataType`.
public enum ArrayDataType: Int32, Sendable, CaseIterable {
    case float16 = 65552, float32 = 65568, double = 65600, int32 = 131104, int8 = 131080
}

/// Sizes that one dimension may take; no `upper` means unbounded.
public struct SizeRange: Sendable, Hashable {
    public var lower: Int
    public var upper: Int?

    public init(lower: Int, upper: Int?) {
        self.lower = lower
        self.upper = upper
    }
}

public struct ArrayFeature: Sendable, Hashable {
    public enum Flexibility: Sendable, Hashable {
        case fixed
        case enumerated([[Int]])
        case ranges([SizeRange])
    }

    public enum Fill: Sendable, Hashable { case int(Int32), float(Float), double(Double) }

    /// The default shape; empty for scalars and for outputs whose shape depends on the input.
    public var shape: [Int]
    public var dataType: ArrayDataType
    public var flexibility: Flexibility
    /// What an optional input holds when it is not given.
    public var defaultValue: Fill?

    public init(
        shape: [Int], dataType: ArrayDataType, flexibility: Flexibility = .fixed, defaultValue: Fill? = nil
    ) {
        self.shape = shape
        self.dataType = dataType
        self.flexibility = flexibility
        self.defaultValue = defaultValue
    }
}

public struct ImageFeature: Sendable, Hashable {
    public enum ColorSpace: Int32, Sendable, CaseIterable {
        case unspecified = 0, grayscale = 10, rgb = 20, bgr = 30, grayscaleFloat16 = 40
    }

    public struct Size: Sendable, Hashable {
        public var width: Int
        public var height: Int

        public init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    public enum Flexibility: Sendable, Hashable {
        case fixed
        case enumerated([Size])
        case ranges(width: SizeRange, height: SizeRange)
    }

    /// The default size.
    public var width: Int
    public var height: Int
    public var colorSpace: ColorSpace
    public var flexibility: Flexibility

    public init(width: Int, height: Int, colorSpace: ColorSpace, flexibility: Flexibility = .fixed) {
        self.width = width
        self.height = height
        self.colorSpace = colorSpace
        self.flexibility = flexibility
    }
}
