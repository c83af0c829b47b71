import CoreML
import Testing

@Suite struct FeatureTests {
    @Test func values() throws {
        #expect(MLFeatureValue(int64: 3).int64Value == 3)
        #expect(MLFeatureValue(double: 0.5).doubleValue == 0.5)
        #expect(MLFeatureValue(string: "a").stringValue == "a")
        #expect(MLFeatureValue(string: "a").multiArrayValue == nil)
        #expect(MLFeatureValue(undefined: .multiArray).isUndefined)
        #expect(try MLFeatureValue(dictionary: ["a": 1]).dictionaryValue == ["a": 1])
        #expect(throws: MLModelError.self) { try MLFeatureValue(dictionary: ["a": 1, 2: 3]) }
        #expect(MLFeatureValue(sequence: MLSequence(strings: ["a"])).sequenceValue?.stringValues == ["a"])
        let one = MLFeatureValue(multiArray: try array([1, 2], [2]))
        #expect(one.isEqual(to: MLFeatureValue(multiArray: try array([1, 2], [2]))))
        #expect(!one.isEqual(to: MLFeatureValue(multiArray: try array([1, 3], [2]))))
        #expect(!one.isEqual(to: MLFeatureValue(int64: 1)))
    }

    @Test func integerKeys() throws {
        let values = [
            try MLFeatureValue(dictionary: [1: 0.5]), try MLFeatureValue(dictionary: [Int64(1): 0.5]),
            try MLFeatureValue(dictionary: [UInt8(1): 0.5]), MLFeatureValue(MLSendableFeatureValue([1: 0.5])),
            try #require(try features(["a": [1: 0.5]])["a"]), try MLFeatureValue(dictionary: [NSNumber(value: 1): 0.5]),
        ]
        for value in values {
            #expect(value.dictionaryValue as? [Int64: Double] == [1: 0.5])
            #expect(value.dictionaryValue[1] == 0.5 && value.dictionaryValue[UInt8(1)] == 0.5)
            #expect(value == values[0])
        }
        #expect(throws: MLModelError.self) { try MLFeatureValue(dictionary: [UInt64.max: 1]) }
    }

    @Test func dictionaryProviders() throws {
        let ones = try array([1], [1])
        let provider = try features(["a": 1, "b": 2.5, "c": "text", "d": ones, "e": MLFeatureValue(int64: 9)])
        #expect(provider.featureNames == ["a", "b", "c", "d", "e"])
        #expect(provider["a"]?.type == .int64)
        #expect(provider["b"]?.doubleValue == 2.5)
        #expect(provider.featureValue(for: "c")?.stringValue == "text")
        #expect(provider["d"]?.multiArrayValue === ones)
        #expect(provider["e"]?.int64Value == 9)
        #expect(provider["f"] == nil)
        let boxed = try features(["i": NSNumber(value: 4), "d": NSNumber(value: 4.0), "f": Float(0.5)])
        #expect(boxed["i"]?.int64Value == 4)
        #expect(boxed["d"]?.doubleValue == 4)
        #expect(boxed["f"]?.doubleValue == 0.5)
        #expect(throws: MLModelError.self) { try features(["a": Date()]) }
    }

    @Test func batches() throws {
        let batch = try MLArrayBatchProvider(dictionary: ["a": [1, 2, 3], "b": ["x", "y", "z"]])
        #expect(batch.count == 3)
        #expect(batch.features(at: 2).featureValue(for: "b")?.stringValue == "z")
        #expect(throws: MLModelError.self) { try MLArrayBatchProvider(dictionary: ["a": [1], "b": [1, 2]]) }
    }

    @Test func errors() {
        let error: any Error = MLModelError(.io, userInfo: [NSLocalizedDescriptionKey: "no file"])
        #expect((error as NSError).domain == "com.apple.CoreML")
        #expect((error as NSError).code == 3)
        #expect(error.localizedDescription == "no file")
        do {
            throw error
        } catch MLModelError.io {
        } catch {
            Issue.record("not caught by its code")
        }
        #expect((error as? MLModelError)?.code == .io)
    }

    @Test func keys() {
        let scoped = MLParameterKey.weights.scoped(to: "dense")
        #expect(scoped == MLParameterKey.weights.scoped(to: "dense"))
        #expect(scoped != .weights)
        #expect([MLParameterKey.learningRate: 1][.learningRate] == 1)
        #expect(MLParameterKey.epochs.name == "epochs")
    }

    @Test func configurationsAreCopied() throws {
        let configuration = MLModelConfiguration()
        #expect(configuration.computeUnits == .all)
        #expect(configuration.parameters == nil)
        configuration.computeUnits = .cpuOnly
        configuration.functionName = "f"
        let copy = try #require(configuration.copy() as? MLModelConfiguration)
        configuration.computeUnits = .all
        #expect(copy.computeUnits == .cpuOnly)
        #expect(copy.functionName == "f")
    }
}
