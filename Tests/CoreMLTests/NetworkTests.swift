// Neural networks: predictions and updates against numbers that jax computed in double precision.
import CoreML
import Testing

/// A network of the fixtures with its recorded inputs and results.
struct RecordedNetwork: Decodable {
    let inputs: [[Float]]
    let targets: [[Float]]
    let predictions: [[Double]]
    let losses: [Double]
    let weights: [String: [Double]]

    static func url(_ name: String, _ type: String) -> URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Networks/\(name).\(type)")
    }

    static func load(_ name: String) throws -> RecordedNetwork {
        try JSONDecoder().decode(RecordedNetwork.self, from: Data(contentsOf: url(name, "json")))
    }

    /// In a directory of its own.
    static func compile(_ name: String) throws -> URL { try MLModel.compileModel(at: url(name, "mlmodel")) }

    func samples(input: String, shape: [Int], target: (Int) throws -> (String, Any)) throws -> MLArrayBatchProvider {
        MLArrayBatchProvider(
            array: try inputs.indices.map { index in
                let (name, value) = try target(index)
                return try features([input: array(inputs[index], shape), name: value])
            })
    }
}

func expectClose(_ a: [Double], _ b: [Double], _ tolerance: Double, _ what: String) {
    #expect(a.count == b.count, "\(what)")
    let worst = zip(a, b).map { abs($0 - $1) }.max() ?? 0
    #expect(worst <= tolerance && a.allSatisfy(\.isFinite), "\(what): \(worst)")
}

@Suite struct NetworkPredictionTests {
    @Test(arguments: [
        ("mlp_sgd", "x", [4], "probabilities"), ("mlp_exact", "x", [4], "probabilities"),
        ("regression", "x", [3], "y"), ("activations", "x", [2, 6, 6], "y"),
    ]) func arrays(_ name: String, _ input: String, _ shape: [Int], _ output: String) throws {
        let recorded = try RecordedNetwork.load(name)
        let model = try MLModel(contentsOf: RecordedNetwork.compile(name))
        for (values, expected) in zip(recorded.inputs, recorded.predictions) {
            let result = try predict(model, [input: array(values, shape, .double)])
            let got = try #require(result.featureValue(for: output)?.multiArrayValue)
            #expect(
                got.dataType == model.modelDescription.outputDescriptionsByName[output]?.multiArrayConstraint?.dataType)
            expectClose(numbers(got).map(Double.init), expected, 2e-6, name)
        }
    }

    @Test(arguments: ["convnet_max", "convnet_average"]) func classifiers(_ name: String) throws {
        let recorded = try RecordedNetwork.load(name)
        let model = try MLModel(contentsOf: RecordedNetwork.compile(name))
        let labels = try #require(model.modelDescription.classLabels as? [String])
        for (values, expected) in zip(recorded.inputs, recorded.predictions) {
            let result = try predict(model, ["image": array(values, [1, 8, 8])])
            let dictionary = try #require(result.featureValue(for: "probabilities")?.dictionaryValue)
            expectClose(labels.map { dictionary[$0]?.doubleValue ?? .nan }, expected, 2e-6, name)
            let best = try #require(expected.indices.max { expected[$0] < expected[$1] })
            #expect(result.featureValue(for: "animal")?.stringValue == labels[best])
        }
    }

    @Test func descriptions() throws {
        let model = try MLModel(contentsOf: RecordedNetwork.compile("mlp_exact"))
        let description = model.modelDescription
        #expect(description.isUpdatable)
        #expect(Set(description.trainingInputDescriptionsByName.keys) == ["x", "probabilities_true"])
        let rate = try #require(description.parameterDescriptionsByKey[.learningRate])
        #expect((rate.defaultValue as? NSNumber)?.doubleValue == 0.05)
        #expect(rate.numericConstraint?.maxNumber == 1)
        #expect(
            description.parameterDescriptionsByKey[.epochs]?.numericConstraint?.enumeratedNumbers == [1, 2, 3, 5, 50])
        #expect(try model.parameterValue(for: .epochs) as? Int == 3)
        let weights = try model.parameterValue(for: .weights.scoped(to: "hidden")) as? MLMultiArray
        #expect(weights?.shape == [8, 4])
        #expect(throws: MLModelError.self) { try model.parameterValue(for: .weights.scoped(to: "act")) }
        #expect(throws: MLModelError.self) { try model.parameterValue(for: .momentum) }
    }

    @Test func structure() async throws {
        let structure = try await MLModelStructure.load(contentsOf: RecordedNetwork.compile("mlp_sgd"))
        guard case .neuralNetwork(let network) = structure else {
            Issue.record("not a network")
            return
        }
        #expect(network.layers.map(\.type) == ["innerProduct", "activation", "innerProduct", "softmax"])
        #expect(network.layers.map(\.inputNames) == [["x"], ["h"], ["a"], ["logits"]])
    }

    @Test(arguments: [
        ("linear_squared", "linear output"), ("softplus", "no gradient passes"), ("no_loss", "0 loss layers"),
        ("two_losses", "2 loss layers"), ("frozen_bias", "must be updatable"), ("zero_batch", "mini-batch size"),
        ("wild_rate", "out of its range"), ("old", "version is 3"),
    ]) func whatCannotBeUpdatedIsNotCompiled(_ name: String, _ reason: String) throws {
        let error = #expect(throws: MLModelError.self) { _ = try RecordedNetwork.compile("refused_" + name) }
        #expect(error?.localizedDescription.contains(reason) == true, "\(error?.localizedDescription ?? "")")
    }

    /// Damaged files are errors, whatever byte is wrong.
    @Test func damage() throws {
        let original = try Data(contentsOf: RecordedNetwork.url("convnet_max", "mlmodel"))
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("damaged.mlmodel")
        var compiled = 0
        for index in stride(from: 0, to: original.count, by: 7) {
            for value in [0xFF, original[index] &+ 1] {
                var data = original
                data[index] = value
                try data.write(to: file)
                guard let url = try? MLModel.compileModel(at: file) else { continue }
                compiled += 1
                try FileManager.default.removeItem(at: url.deletingLastPathComponent())
            }
        }
        #expect(compiled > 0)
    }
}
