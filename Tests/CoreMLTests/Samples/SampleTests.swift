// The samples run: code in the styles of apps does on Linux what it does on Apple systems.
import CoreML
import Testing

@Suite struct SampleTests {
    private func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    @Test func generatedModel() async throws {
        let recorded = try RecordedNetwork.load("convnet_max")
        let model = try await Animals.load(contentsOf: RecordedNetwork.compile("convnet_max"))
        let images = try recorded.inputs.map { try array($0, [1, 8, 8], .double) }
        let outputs = try model.predictions(inputs: images.map { AnimalsInput(image: $0) })
        for (output, expected) in zip(outputs, recorded.predictions) {
            #expect(abs((output.probabilities["cat"] ?? .nan) - expected[0]) < 1e-6)
            #expect(output.probabilities[output.animal] == output.probabilities.values.max())
        }
        let single = try await model.prediction(input: AnimalsInput(image: MLShapedArray<Double>(images[0])))
        #expect(single.animal == outputs[0].animal)
        let made = AnimalsOutput(probabilities: ["cat": 1], animal: "cat")
        #expect(made.probabilities == ["cat": 1] && made.animal == "cat")
    }

    @Test func onDeviceUpdater() async throws {
        let recorded = try RecordedNetwork.load("convnet_max")
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let original = try RecordedNetwork.compile("convnet_max")
        let updater = OnDeviceUpdater(defaultModelURL: original, directory: folder)
        let images = try recorded.inputs.map { try array($0, [1, 8, 8], .double) }
        let labels = recorded.targets.map { ["cat", "dog", "élan"][Int($0[0])] }
        let data = updater.trainingData(images: images, labels: labels)
        let url: URL = try await withCheckedThrowingContinuation { continuation in
            updater.update(with: data, epochs: 5) { continuation.resume(with: $0) }
        }
        #expect(updater.losses.count == 5)
        #expect(updater.losses[4] < updater.losses[0])
        let before = try OnDeviceUpdater.weights(of: original, layer: "out")
        #expect(try OnDeviceUpdater.weights(of: url, layer: "out") != before)
    }

    @Test func doubles() throws {
        let model = try Fixture.model("linear32")
        let row = try RenamingProvider(dictionary: ["X": array([Float](repeating: 1, count: 8), [2, 4])])
        #expect(row.featureNames == ["x"])
        let options = QuietOptions()
        options.outputBackings = ["no such output": 1]
        let output = try model.prediction(from: row, options: options)
        #expect(output.featureValue(for: "y")?.multiArrayValue?.count == 12)
        #expect(try model.predictions(fromBatch: LoopingBatch(array: [row])).count == 5)
    }

    @Test func decodingLoop() async throws {
        let decoder = try Decoder(contentsOf: MLModel.compileModel(at: Fixture.url("state"), ()))
        #expect(try await decoder.decode([[1, 2, 3, 4], [1, 1, 1, 1]]) == [[1, 2, 3, 4], [2, 3, 4, 5]])
        #expect(await decoder.cache(named: "total") == [2, 3, 4, 5])
        await decoder.restore([0, 0, 0, 1], named: "total")
        #expect(try await decoder.decode([[1, 2, 3, 4]]) == [[1, 2, 3, 5]])
        await decoder.reset()
        #expect(try await decoder.decode([[1, 2, 3, 4]]) == [[1, 2, 3, 4]])
    }

    @Test func modelInspector() async throws {
        let compiled = try MLModel.compileModel(at: Fixture.url("linear32"), ())
        let placements = try await ModelInspector(url: compiled).placements(computeUnits: .all)
        #expect(!placements.isEmpty && placements.allSatisfy { $0.device == "cpu" })
        let network = ModelInspector(url: try RecordedNetwork.compile("mlp_sgd"))
        #expect(try await network.placements(computeUnits: .cpuOnly).map(\.operation).contains("innerProduct"))
        let flexible = ModelInspector(url: try MLModel.compileModel(at: Fixture.url("flexible"), ()))
        #expect(try flexible.summary().contains { $0.contains("up to") })
        #expect(ModelInspector.failure(loading: URL(fileURLWithPath: "/nowhere.mlmodelc")) == "io")
        #expect(ModelInspector.failure(loading: compiled) == "none")
    }

    @Test func batchPredictor() async throws {
        let predictor = try await BatchPredictor(contentsOf: MLModel.compileModel(at: Fixture.url("linear32"), ()))
        let rows: [[Float]] = [[1, 2, 3, 4, -1, 0.5, 0, 2], [0, 0, 0, 0, 1, 1, 1, 1]]
        let expected = rows.map { Fixture.product($0).map { $0 + 0.5 } }
        #expect(try await predictor.predict(rows) == expected)
        let single = try await predictor.predict(MLShapedArray(scalars: rows[0], shape: [2, 4]))
        #expect(single?.scalars == expected[0])
    }

    @Test func tensorPipeline() async throws {
        let pipeline = TensorPipeline(model: try Fixture.model("linear32"))
        let x: [[Float]] = [[1, 2, 3, 4], [-1, 1, -1, 1]]
        let y = Fixture.product(x[0] + x[1]).suffix(6).map { exp(Double($0) + 0.5) }
        let probabilities = try await pipeline.probabilities(x)
        for (got, value) in zip(probabilities, y) { #expect(abs(Double(got) - value / y.reduce(0, +)) < 1e-5) }
        #expect(probabilities.count == 6)
        let logits = MLShapedArray<Float>(scalars: [9, 0, 0, 0, 2, 1], shape: [2, 3])
        #expect(TensorPipeline.next(after: logits) == 1 && TensorPipeline.next(after: logits[0..<1]) == 0)
        let mask = TensorPipeline.causalMask(3)
        #expect(mask.scalars == [0, -.infinity, -.infinity, 0, 0, -.infinity, 0, 0, 0])
    }

    @Test func helpers() throws {
        let values = try MLMultiArray.from([3, 1, 4, 1, 5, 9], dims: 2)
        #expect(values.shape == [1, 6])
        #expect(values.argmax()?.index == 5)
        let matrix = try values.reshaped(to: [2, 3])
        #expect(try matrix.row(1).toDoubles() == [1, 5, 9])
        #expect(try array([1, 2], [2], .float16).toDoubles() == [1, 2])
        let padded = MLMultiArray(shape: [2, 3], dataType: .float32, strides: [8, 1])
        matrix.transfer(to: padded)
        #expect(padded.scalars() == [3, 1, 4, 1, 5, 9])
    }
}

extension MLModel {
    /// Picks the synchronous form in an asynchronous test.
    fileprivate static func compileModel(at url: URL, _: Void) throws -> URL { try compileModel(at: url) }
}
