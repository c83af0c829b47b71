import CoreML
import Testing

@Suite struct DescriptionTests {
    @Test func arrays() throws {
        let description = try Fixture.model("linreg").modelDescription
        #expect(Set(description.inputDescriptionsByName.keys) == ["x", "target", "W", "lr"])
        #expect(Set(description.outputDescriptionsByName.keys) == ["loss", "prediction", "W_next"])
        let x = try #require(description.inputDescriptionsByName["x"])
        #expect(x.type == .multiArray)
        #expect(x.multiArrayConstraint?.shape == [8, 3])
        #expect(x.multiArrayConstraint?.dataType == .float32)
        #expect(!x.isOptional)
        #expect(x.isAllowedValue(MLFeatureValue(multiArray: try MLMultiArray(shape: [8, 3], dataType: .float32))))
        #expect(!x.isAllowedValue(MLFeatureValue(multiArray: try MLMultiArray(shape: [3, 8], dataType: .float32))))
        #expect(!x.isAllowedValue(MLFeatureValue(int64: 3)))
        #expect(description.outputDescriptionsByName["loss"]?.multiArrayConstraint?.shape == [])
        #expect(!description.isUpdatable)
        #expect(description.predictedFeatureName == nil)
        let metadata = try #require(description.metadata[.creatorDefinedKey] as? [String: String])
        #expect(metadata["com.github.apple.coremltools.version"] == "9.0")
    }

    @Test func shapeConstraints() throws {
        let range = try Fixture.model("flexible").modelDescription.inputDescriptionsByName["x"]
        let constraint = try #require(range?.multiArrayConstraint?.shapeConstraint)
        #expect(constraint.type == .range)
        #expect(constraint.sizeRangeForDimension.map(\.rangeValue.location) == [1, 4])
        #expect(constraint.sizeRangeForDimension.map(\.rangeValue.length) == [9, 1])
        let list = try Fixture.model("enumerated").modelDescription.inputDescriptionsByName["x"]
        #expect(list?.multiArrayConstraint?.shapeConstraint.enumeratedShapes == [[2, 4], [5, 4]])
    }

    @Test func statesAndLabels() throws {
        let states = try Fixture.model("state").modelDescription
        #expect(states.stateDescriptionsByName["total"]?.stateConstraint?.bufferShape == [1, 4])
        #expect(states.stateDescriptionsByName["total"]?.stateConstraint?.dataType == .float16)
        #expect(states.inputDescriptionsByName["total"] == nil)
        let labels = try Fixture.model("classifier").modelDescription
        #expect(labels.predictedFeatureName == "classLabel")
        #expect(labels.outputDescriptionsByName["classLabel"]?.type == .string)
        let name = try #require(labels.predictedProbabilitiesName)
        #expect(labels.outputDescriptionsByName[name]?.dictionaryConstraint?.keyType == .string)
    }

    @Test func functions() throws {
        #expect(try Fixture.model("functions", function: "first").modelDescription.inputDescriptionsByName.count == 1)
    }
}

@Suite struct StructureTests {
    @Test func program() async throws {
        let compiled = try await MLModel.compileModel(at: Fixture.url("control"))
        let plan = try await MLComputePlan.load(contentsOf: compiled, configuration: MLModelConfiguration())
        guard case .program(let program) = plan.modelStructure, let main = program.functions["main"] else {
            Issue.record("not a program")
            return
        }
        #expect(main.inputs.map(\.name) == ["x", "n"])
        let loop = try #require(main.block.operations.first { $0.operatorName == "ios17.while_loop" })
        #expect(loop.blocks.count == 2)
        #expect(loop.inputs["loop_vars"]?.bindings.count == 2)
        #expect(plan.deviceUsage(for: loop)?.preferred == MLModel.availableComputeDevices.first)
        let constant = try #require(main.block.operations.first { $0.operatorName == "const" })
        #expect(plan.deviceUsage(for: constant) == nil)
    }
}
