// Which inputs of a program live in a store, which are fed, and where its outputs go. Checked once, runs nothing.

/// The answer to "what is bound to what" that every executor starts from.
struct ProgramBinding {
    let program: LoadedProgram
    /// Inputs that are read from the store.
    let residents: [String: Resident]
    /// From a resident input to the output that becomes its new value.
    let donated: [String: String]
    let feeds: [Feature]
    let results: [Feature]
    /// What every element of an i32 input must be in.
    let ranges: [String: Range<Int32>]

    init(
        _ program: LoadedProgram, store: TensorStore, options: ProgramSession.Options
    ) throws(RLXError) {
        var residents: [String: Resident] = [:]
        for input in program.inputs {
            guard let resident = store.resident(input.name) else { continue }
            try input.check(dtype: resident.feature.dtype, shape: resident.feature.shape)
            residents[input.name] = resident
        }
        donated = try Self.donations(options.pairs, program, residents)
        for (name, _) in options.ranges {
            let input = try program.inputs.feature(name)
            guard input.dtype == .int32 else { throw .rangeNeedsIntegers(name, input.dtype) }
        }
        let consumed = Set(donated.values)
        self.program = program
        self.residents = residents
        feeds = program.inputs.filter { residents[$0.name] == nil }
        results = program.outputs.filter { !consumed.contains($0.name) }
        ranges = options.ranges
    }

    private static func donations(
        _ pairs: [ProgramSession.Pair], _ program: LoadedProgram, _ residents: [String: Resident]
    ) throws(RLXError) -> [String: String] {
        var donated: [String: String] = [:]
        var consumed: Set<String> = []
        for pair in pairs {
            let input = try program.inputs.feature(pair.input)
            let output = try program.outputs.feature(pair.output)
            guard residents[pair.input] != nil else { throw .noSuchTensor(pair.input) }
            try input.check(dtype: output.dtype, shape: output.shape)
            guard donated.updateValue(pair.output, forKey: pair.input) == nil else {
                throw .duplicate("input", pair.input)
            }
            guard consumed.insert(pair.output).inserted else { throw .duplicate("output", pair.output) }
        }
        return donated
    }
}

extension [Feature] {
    package func feature(_ name: String) throws(RLXError) -> Feature { self[try index(of: name)] }

    package func index(of name: String) throws(RLXError) -> Int {
        guard let index = firstIndex(where: { $0.name == name }) else {
            throw .noSuchFeature(name, among: map(\.name))
        }
        return index
    }
}
