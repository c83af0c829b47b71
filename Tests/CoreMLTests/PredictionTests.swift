import CoreML
import Testing

@Suite struct PredictionTests {
    let x: [Float] = [1, 2, 3, 4, -1, 0.5, 0, 2]

    @Test func values() throws {
        let model = try Fixture.model("linear32")
        let output = try predict(model, ["x": array(x, [2, 4])])
        #expect(output.featureNames == ["y"])
        let y = try #require(output.featureValue(for: "y")?.multiArrayValue)
        #expect(y.shape == [2, 6])
        #expect(y.dataType == .float32)
        #expect(numbers(y) == Fixture.product(x).map { $0 + 0.5 })
    }

    @Test func inputsOfOtherTypesAndLayouts() throws {
        let model = try Fixture.model("linear32")
        let expected = Fixture.product(x).map { $0 + 0.5 }
        for type in [MLMultiArrayDataType.double, .float16] {
            let output = try predict(model, ["x": array(x, [2, 4], type)])
            #expect(numbers(output.featureValue(for: "y")?.multiArrayValue) == expected)
        }
        let padded = MLMultiArray(shape: [2, 4], dataType: .float32, strides: [9, 2])
        try array(x, [2, 4]).transfer(to: padded)
        #expect(numbers(try predict(model, ["x": padded]).featureValue(for: "y")?.multiArrayValue) == expected)
    }

    @Test func halfPrecision() throws {
        let model = try Fixture.model("linear16")
        let output = try predict(model, ["x": array(x, [2, 4], .float16)])
        let y = try #require(output.featureValue(for: "y")?.multiArrayValue)
        #expect(y.dataType == .float16)
        #expect(numbers(y) == Fixture.product(x))
    }

    @Test func mistakes() throws {
        let model = try Fixture.model("linear32")
        func message(_ values: [String: Any]) -> String? {
            do {
                _ = try predict(model, values)
                return nil
            } catch {
                #expect(error is MLModelError)
                return error.localizedDescription
            }
        }
        #expect(message([:]) == "the input 'x' is not given")
        #expect(message(["x": 1])?.contains("'x' is a int64") == true)
        #expect(try message(["x": array(x, [4, 2])])?.contains("'x' has the shape [4, 2]") == true)
        #expect(try message(["x": array(x, [2, 4]), "other": 1]) == nil)
    }

    @Test func outputBackings() throws {
        let model = try Unkindness.$current.withValue(Unkindness()) { try Fixture.model("linear32") }
        let input = try array(x, [2, 4])
        let expected = Fixture.product(x).map { $0 + 0.5 }
        let options = MLPredictionOptions()
        for backing in [
            try MLMultiArray(shape: [2, 6], dataType: .float32),
            MLMultiArray(shape: [2, 6], dataType: .float32, strides: [10, 1]),
        ] {
            options.outputBackings = ["y": backing]
            let output = try predict(model, ["x": input], options)
            #expect(output.featureValue(for: "y")?.multiArrayValue === backing)
            #expect(numbers(backing) == expected)
        }
        for wrong in [try array(x, [2, 4]), try MLMultiArray(shape: [2, 6], dataType: .double)] {
            options.outputBackings = ["y": wrong]
            #expect(throws: MLModelError.self) { try predict(model, ["x": input], options) }
        }
        options.outputBackings = ["z": try MLMultiArray(shape: [2, 6], dataType: .float32)]
        #expect(throws: MLModelError.self) { try predict(model, ["x": input], options) }
    }

    @Test func unkindOutputs() throws {
        let model = try Unkindness.$current.withValue(Unkindness(padsRows: true, ignoresBackings: true)) {
            try Fixture.model("linear16")
        }
        let options = MLPredictionOptions()
        let backing = try MLMultiArray(shape: [2, 6], dataType: .float16)
        options.outputBackings = ["y": backing]
        let output = try predict(model, ["x": array(x, [2, 4], .float16)], options)
        let y = try #require(output.featureValue(for: "y")?.multiArrayValue)
        #expect(y !== backing)
        #expect(y.strides == [32, 1])
        #expect(numbers(y) == Fixture.product(x))
        y.withUnsafeBufferPointer(ofType: Float16.self) { buffer in
            #expect(buffer.count == 64)
            #expect(buffer[6].isNaN)
        }
    }

    @Test func backingsMustNotLieOverInputs() throws {
        let model = try Fixture.model("linreg")
        let weights = try array([0, 0, 0], [3, 1])
        let options = MLPredictionOptions()
        options.outputBackings = ["W_next": weights]
        let values: [String: Any] = [
            "x": try array([Float](repeating: 1, count: 24), [8, 3]),
            "target": try array([Float](repeating: 1, count: 8), [8, 1]), "W": weights, "lr": try array([0.1], [1]),
        ]
        #expect(throws: MLModelError.self) { try predict(model, values, options) }
        options.outputBackings = ["W_next": try array([0, 0, 0], [3, 1])]
        let output = try predict(model, values, options)
        #expect(output.featureValue(for: "loss")?.multiArrayValue?.shape == [1])
        #expect(numbers(output.featureValue(for: "loss")?.multiArrayValue) == [8])
    }

    @Test func asynchronously() async throws {
        let compiled = try await MLModel.compileModel(at: Fixture.url("linear32"))
        let model = try await MLModel.load(contentsOf: compiled)
        let output = try await model.prediction(from: features(["x": array(x, [2, 4])]))
        #expect(numbers(output.featureValue(for: "y")?.multiArrayValue) == Fixture.product(x).map { $0 + 0.5 })
    }

    /// A task that was cancelled predicts nothing more, whichever form it awaits.
    @Test func cancelledTasks() async throws {
        let codes = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var codes: [MLModelError.Code?] = []
            func run(_ predict: () async throws -> Void) async {
                do {
                    try await predict()
                    codes.append(nil)
                } catch {
                    codes.append((error as? MLModelError)?.code)
                }
            }
            await run {
                let (model, x) = (try Fixture.model("linear32"), try array([Float](repeating: 1, count: 8), [2, 4]))
                _ = try await model.prediction(from: features(["x": x]))
            }
            await run {
                let x = MLTensor(ones: [2, 4], scalarType: Float.self)
                _ = try await Fixture.model("linear32").prediction(from: ["x": x])
            }
            await run {
                let model = try Fixture.model("state")
                let x = try array([1, 2, 3, 4], [1, 4], .float16)
                _ = try await model.prediction(from: features(["x": x]), using: model.makeState())
            }
            return codes
        }.value
        #expect(codes.count == 3 && codes.allSatisfy { $0 == MLModelError.Code.predictionCancelled })
    }

    @Test func withHandlers() async throws {
        let url: URL = try await withCheckedThrowingContinuation { continuation in
            MLModel.compileModel(at: Fixture.url("linear32")) { continuation.resume(with: $0) }
        }
        let names = try await withCheckedThrowingContinuation { continuation in
            MLModel.load(contentsOf: url) { result in
                continuation.resume(with: result.map { Array($0.modelDescription.inputDescriptionsByName.keys) })
            }
        }
        #expect(names == ["x"])
    }

    @Test func batches() throws {
        let model = try Fixture.model("linear32")
        let rows = try (0..<3).map { row in try features(["x": array(x.map { $0 * Float(row) }, [2, 4])]) }
        let output = try model.predictions(fromBatch: MLArrayBatchProvider(array: rows))
        #expect(output.count == 3)
        let last = output.features(at: 2).featureValue(for: "y")?.multiArrayValue
        #expect(numbers(last) == Fixture.product(x).map { $0 * 2 + 0.5 })
    }

    @Test func states() throws {
        let model = try Fixture.model("state")
        let state = model.makeState()
        let input = try features(["x": array([1, 2, 3, 4], [1, 4], .float16)])
        var output: MLMultiArray?
        for _ in 0..<3 {
            output = try model.prediction(from: input, using: state).featureValue(for: "y")?.multiArrayValue
        }
        #expect(numbers(output) == [3, 6, 9, 12])
        state.withMultiArray(for: "total") { array in
            #expect(numbers(array) == [3, 6, 9, 12])
            array[0] = -1
        }
        output = try model.prediction(from: input, using: state).featureValue(for: "y")?.multiArrayValue
        #expect(numbers(output) == [0, 8, 12, 16])
        let other = model.makeState()
        output = try model.prediction(from: input, using: other).featureValue(for: "y")?.multiArrayValue
        #expect(numbers(output) == [1, 2, 3, 4])
    }

    @Test func statesAreNeeded() throws {
        let model = try Fixture.model("state")
        let values = try ["x": array([1, 2, 3, 4], [1, 4], .float16)]
        #expect(throws: MLModelError.self) { try predict(model, values) }
        let foreign = try Fixture.model("linear32").makeState()
        #expect(throws: MLModelError.self) { try model.prediction(from: features(values), using: foreign) }
        let plain = try Fixture.model("linear16")
        let output = try plain.prediction(
            from: features(["x": array(x, [2, 4], .float16)]), using: plain.makeState())
        #expect(numbers(output.featureValue(for: "y")?.multiArrayValue) == Fixture.product(x))
    }

    @Test func classifiers() throws {
        let model = try Fixture.model("classifier")
        #expect(model.modelDescription.classLabels as? [String] == ["cat", "dog", "élan"])
        let output = try predict(model, ["x": array([1, 0, 0, 0], [1, 4])])
        #expect(output.featureValue(for: "classLabel")?.stringValue == "élan")
        let name = try #require(model.modelDescription.predictedProbabilitiesName)
        let probabilities = try #require(output.featureValue(for: name)?.dictionaryValue)
        let sum = probabilities.values.reduce(0) { $0 + $1.doubleValue }
        #expect(abs(sum - 1) < 1e-6)
        // exp((0, 1, 2) / 4), normalised
        #expect(abs((probabilities["cat"]?.doubleValue ?? 0) - 0.2542_7521) < 1e-6)
    }

    @Test func flexibleShapes() throws {
        let model = try Fixture.model("flexible")
        for rows in [1, 2, 9] {
            let values = (0..<rows * 4).map { Float($0) - 3 }
            let output = try predict(model, ["x": array(values, [rows, 4])])
            #expect(numbers(output.featureValue(for: "y")?.multiArrayValue) == values.map { max($0, 0) })
        }
        #expect(throws: MLModelError.self) {
            try predict(model, ["x": array([Float](repeating: 0, count: 40), [10, 4])])
        }
        let enumerated = try Fixture.model("enumerated")
        #expect(throws: MLModelError.self) {
            try predict(enumerated, ["x": array([Float](repeating: 0, count: 12), [3, 4])])
        }
    }

    @Test func assets() async throws {
        let data = Fixture.url("linear32").appendingPathComponent("Data/com.apple.CoreML")
        let asset = try MLModelAsset(
            specification: Data(contentsOf: data.appendingPathComponent("model.mlmodel")),
            blobMapping: [
                try #require(URL(string: "@model_path/weights/weight.bin")):
                    try Data(contentsOf: data.appendingPathComponent("weights/weight.bin"))
            ])
        #expect(try await asset.functionNames == [])
        let model = try await MLModel.load(asset: asset, configuration: MLModelConfiguration())
        let output = try predict(model, ["x": array(x, [2, 4])])
        #expect(numbers(output.featureValue(for: "y")?.multiArrayValue) == Fixture.product(x).map { $0 + 0.5 })
    }

    @Test func loadingMistakes() throws {
        #expect(throws: MLModelError.self) { try MLModel(contentsOf: Fixture.url("linear32")) }
        #expect(throws: MLModelError.self) { try MLModel(contentsOf: URL(fileURLWithPath: "/nowhere.mlmodelc")) }
        #expect(throws: MLModelError.self) { try MLModel.compileModel(at: URL(fileURLWithPath: "/nowhere.mlpackage")) }
        #expect(throws: MLModelError.self) { try Fixture.model("functions", function: "third") }
    }
}
