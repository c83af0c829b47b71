// What a training bundle says of itself. Knows the format, and neither files nor programs.

/// `manifest.json` of a training bundle, as the Python side writes it.
struct BundleManifest: Decodable, Sendable {
    static let format = 1

    /// The type of a value as graphs have it.
    struct Value: Decodable, Sendable {
        let dtype: DType
        let shape: [Int]
    }

    /// A value that lives in the session's store, under the name of its feature.
    struct Resident: Decodable, Sendable {
        let feature: String
        let shape: [Int]
    }

    struct Param: Decodable, Sendable {
        let feature: String
        let shape: [Int]
        let trained: Bool
    }

    struct Buffer: Decodable, Sendable {
        let feature: String
        let shape: [Int]
        /// Whether a step writes it.
        let assigned: Bool
    }

    /// What a program's feature means.
    struct Port: Decodable, Sendable {
        let feature: String
        let dtype: DType
        let shape: [Int]
    }

    /// An output that is put into the store and that the program does not read.
    struct Written: Decodable, Sendable {
        let feature: String
        let resident: String
    }

    struct Program: Decodable, Sendable {
        let file: String
        let units: String
        /// By the names that values have in graphs.
        let inputs: [String: Port]
        let outputs: [String: Port]
        /// From a resident's feature to the output with its next value.
        let pairs: [String: String]
        let written: [String: Written]
        /// By feature; what every element must be below.
        let ranges: [String: Int]
        /// By feature; what an element may be besides, since the program puts another in its place.
        let replaced: [String: [Int32]]
    }

    /// Inputs, outputs and programs at one choice of sizes.
    struct Form: Decodable, Sendable {
        let inputs: [String: Value]
        let outputs: [String: Value]
        let programs: [String: Program]
    }

    /// One optimizer's numbers.
    struct Scalars: Decodable, Sendable {
        /// How many updates had been applied when its params joined.
        let since: Int
        let lrScale: Double
        let numbers: [String: Formula]
        /// Which of the estimates it needs.
        let estimate: Int?

        private enum CodingKeys: String, CodingKey {
            case since, numbers, estimate
            case lrScale = "lr_scale"
        }
    }

    /// An estimate of the Hessian's diagonal, made by a program of its own.
    struct Estimate: Decodable, Sendable {
        let every: Int
        let estimator: String
        let program: String
    }

    /// The model to deploy, and where in its files values of params are.
    struct Model: Decodable, Sendable {
        struct Place: Decodable, Sendable {
            enum File: String, Decodable { case model, weights }
            let file: File
            let offset: Int
        }

        let file: String
        let places: [String: Place]
    }

    let loss: String
    let seed: Int
    let checkpoint: String
    let predictInputs: [String]
    /// The first has the programs that know no sizes too.
    let forms: [Form]
    let params: [String: Param]
    let buffers: [String: Buffer]
    let state: [String: Resident]
    let accumulators: [String: Resident]
    let scalars: [Scalars]
    let estimates: [Estimate]
    let scale: LossScale.Bounds
    let model: Model
    /// From a path in the bundle to its SHA-256.
    let files: [String: String]

    private enum CodingKeys: String, CodingKey {
        case loss, seed, checkpoint, params, buffers, state, accumulators, scalars, estimates, scale, model, files
        case predictInputs = "predict_inputs"
        case moreSizes = "more_sizes"
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        loss = try values.decode(String.self, forKey: .loss)
        seed = try values.decode(Int.self, forKey: .seed)
        checkpoint = try values.decode(String.self, forKey: .checkpoint)
        predictInputs = try values.decode([String].self, forKey: .predictInputs)
        forms = [try Form(from: decoder)] + (try values.decode([Form].self, forKey: .moreSizes))
        params = try values.decode([String: Param].self, forKey: .params)
        buffers = try values.decode([String: Buffer].self, forKey: .buffers)
        state = try values.decode([String: Resident].self, forKey: .state)
        accumulators = try values.decode([String: Resident].self, forKey: .accumulators)
        scalars = try values.decode([Scalars].self, forKey: .scalars)
        estimates = try values.decode([Estimate].self, forKey: .estimates)
        scale = try values.decode(LossScale.Bounds.self, forKey: .scale)
        model = try values.decode(Model.self, forKey: .model)
        files = try values.decode([String: String].self, forKey: .files)
    }

    /// Those that were named first when the bundle was exported.
    var inputs: [String: Value] { forms[0].inputs }

    /// What tells one version of the format from another.
    struct Version: Decodable { let format: Int }
}

extension BundleManifest {
    /// Throws `badPackage` for what the types alone do not rule out.
    func check() throws(RLXError) {
        try Self.checkShapes(
            params.map { ($0, $1.shape) } + buffers.map { ($0, $1.shape) } + state.map { ($0, $1.shape) }
                + accumulators.map { ($0, $1.shape) })
        for form in forms { try check(form) }
        for name in ["apply", "given"] {
            guard forms[0].programs[name] != nil else { throw .badManifest("programs", "there is no '\(name)'") }
        }
        for path in [checkpoint, model.file] + [String](files.keys) { try Self.checkInside(path) }
        let packages = forms.flatMap { $0.programs.values.map(\.file) } + [model.file]
        for path in [checkpoint] + packages.map({ $0 + "/Data/com.apple.CoreML/model.mlmodel" })
        where files[path] == nil { throw .badManifest("files", "there is no hash of '\(path)'") }
        guard estimates.allSatisfy({ $0.every > 0 }), scalars.allSatisfy({ $0.since >= 0 }),
            scalars.allSatisfy({ $0.estimate.map(estimates.indices.contains) ?? true }), scale.patience > 0
        else { throw .badManifest("scalars", "a count is out of its range") }
        guard accumulators.values.allSatisfy({ place in params.values.contains { $0.shape == place.shape } }) else {
            throw .badManifest("accumulators", "one has a shape that no param has")
        }
        guard predictInputs.allSatisfy({ inputs[$0] != nil }) else {
            throw .badManifest("predict_inputs", "one of them is no input")
        }
    }

    private func check(_ form: Form) throws(RLXError) {
        try Self.checkShapes(
            form.inputs.map { ($0, $1.shape) } + form.outputs.map { ($0, $1.shape) }
                + form.programs.values.flatMap { $0.inputs.map { ($0, $1.shape) } })
        guard form.inputs.mapValues(\.dtype) == inputs.mapValues(\.dtype) else {
            throw .badManifest("more_sizes", "inputs of one size are not those of another")
        }
        for name in ["train", "accumulate", "gradients", "evaluate", "infer"] + estimates.map(\.program) {
            guard form.programs[name] != nil else { throw .badManifest("programs", "there is no '\(name)'") }
        }
        for (name, program) in form.programs {
            try Self.checkInside(program.file)
            guard program.pairs.keys.allSatisfy(residents.contains) else {
                throw .badManifest("programs.\(name)", "it updates what is neither a param nor state")
            }
            guard program.ranges.values.allSatisfy({ 0...Int(Int32.max) ~= $0 }) else {
                throw .badManifest("programs.\(name)", "a range is no range of 32-bit integers")
            }
        }
    }

    private static func checkShapes(_ shapes: [(String, [Int])]) throws(RLXError) {
        for (name, shape) in shapes {
            guard let count = elementCount(shape), count <= mostElements else {
                throw .badManifest(name, "the shape \(shape.text) fits no memory")
            }
        }
    }

    private static let mostElements = 1 << 40

    private var residents: Set<String> {
        Set(params.values.map(\.feature)).union(buffers.values.map(\.feature))
            .union(state.values.map(\.feature)).union(accumulators.values.map(\.feature))
    }

    private static func checkInside(_ path: String) throws(RLXError) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard !parts.contains(where: { $0.isEmpty || $0 == ".." || $0 == "." }) else {
            throw .badManifest(path, "the path leads out of the bundle")
        }
    }
}

extension DType: Decodable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let name = try container.decode(String.self)
        guard let match = Self.allCases.first(where: { $0.description == name }) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "there is no dtype '\(name)'")
        }
        self = match
    }
}
