import Foundation
import MILFormat
import Testing

/// What the packages of coremltools hold, against the script that made them.
@Suite struct PackageTests {
    let weight = (0..<24).map { (Float($0) - 7.5) / 4 }

    @Test func linear32() throws {
        let package = try Fixture.package("linear32")
        #expect(package.model.specificationVersion == 8)
        let function = try package.function()
        #expect(function.opset == "CoreML7")
        #expect(function.inputs == [NamedType(name: "x", type: .tensor(TensorType(.float32, shape: [2, 4])))])
        #expect(function.body?.outputs == ["y"])
        let product = try #require(function.operation("matmul"))
        #expect(product.inputs["x"] == [.name("x")])
        guard case .name(let weights)? = product.inputs["y"]?.first else {
            Issue.record("matmul has no weights")
            return
        }
        #expect(try package.elements(function.constant(weights), as: Float.self) == weight)
        let half = try #require(function.operation("add")?.inputs["y"]?.first)
        guard case .name(let name) = half else {
            Issue.record("add has no constant")
            return
        }
        #expect(function.constant(name) == Value(type: .tensor(TensorType(.float32, [])), payload: .floats([0.5])))
        let described = try package.model.functionDescription()
        #expect(described.inputs.map(\.name) == ["x"])
        #expect(described.inputs.first?.type == .multiArray(ArrayFeature(shape: [2, 4], dataType: .float32)))
        #expect(described.outputs.first?.type == .multiArray(ArrayFeature(shape: [2, 6], dataType: .float32)))
    }

    @Test func float16() throws {
        let package = try Fixture.package("linear16")
        let function = try package.function()
        let name = try #require(function.operation("matmul")?.inputs["y"]?.first)
        guard case .name(let weights) = name else {
            Issue.record("matmul has no weights")
            return
        }
        #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
        #expect(try package.elements(function.constant(weights), as: Float16.self) == weight.map { Float16($0) })
        #endif
        #expect(try package.elements(function.constant(weights), as: UInt16.self).first == 0xBF80)  // -1.875
    }

    @Test func blobsOfSeveralTypes() throws {
        let package = try Fixture.package("blobs")
        let function = try package.function()
        let count = 0..<16
        #expect(try package.elements(function.constant("ids"), as: Int32.self) == count.map { Int32($0 * 1000 - 5) })
        #expect(try package.elements(function.constant("int8_workaround"), as: Int8.self) == count.map { Int8($0) })
        #expect(try package.elements(function.constant("uint8_workaround"), as: UInt8.self) == count.map { UInt8($0) })
        #expect(try package.elements(function.constant("int16_workaround"), as: Int16.self) == count.map { Int16($0) })
        #expect(
            try package.elements(function.constant("uint16_workaround"), as: UInt16.self) == count.map { UInt16($0) })
        #expect(function.constant("flags")?.payload == .bools(count.map { $0 % 2 == 0 }))
    }

    @Test func subByteBlob() throws {
        let package = try Fixture.package("subbyte")
        let operation = try #require(package.function().operation("constexpr_blockwise_shift_scale"))
        guard case .value(let data)? = operation.inputs["data"]?.first,
            case .blob(let file, let offset) = data.payload,
            case .value(let scale)? = operation.inputs["scale"]?.first
        else {
            Issue.record("the parameters are not literals")
            return
        }
        let blob = try package.blob(fileName: file, offset: offset)
        #expect(blob.dataType == .int4)
        #expect(blob.count == 40)
        let expected = (0..<40).map { Int8($0 % 16 - 8) }
        let got = (0..<40).map { index in
            let low = blob.bytes[index / 2] >> (index % 2 * 4)
            return Int8(bitPattern: low << 4) >> 4
        }
        #expect(got == expected)
        #expect(scale.payload == .bytes([0, 0x38, 0, 0x3C, 0, 0x40, 0, 0x44, 0, 0x48]))
    }

    @Test func states() throws {
        let package = try Fixture.package("state")
        let function = try package.function()
        let tensor = TensorType(.float16, shape: [1, 4])
        #expect(function.inputs.contains(NamedType(name: "total", type: .state(tensor))))
        #expect(function.operation("write_state")?.outputs == [])
        let described = try package.model.functionDescription()
        #expect(described.states.map(\.name) == ["total"])
        #expect(described.states.first?.type == .state(ArrayFeature(shape: [1, 4], dataType: .float16)))
        #expect(described.inputs.map(\.name) == ["x"])
    }

    @Test func severalFunctions() throws {
        let package = try Fixture.package("functions")
        #expect(package.model.description.isMultifunction)
        #expect(package.model.defaultFunctionName == "second")
        #expect(try package.function().operation("constexpr_blockwise_shift_scale") != nil)
        #expect(try package.function(named: "first").operation("constexpr_blockwise_shift_scale") == nil)
        #expect(try package.model.functionDescription(named: "first").outputs.map(\.name) == ["y"])
        #expect(throws: FormatError.noSuchFunction("third", available: ["first", "second"])) {
            try package.function(named: "third")
        }
    }

    @Test func flexibleShapes() throws {
        let range = try Fixture.package("flexible").model.functionDescription().inputs.first?.type
        #expect(
            range
                == .multiArray(
                    ArrayFeature(
                        shape: [2, 4], dataType: .float32,
                        flexibility: .ranges([SizeRange(lower: 1, upper: 9), SizeRange(lower: 4, upper: 4)]))))
        let list = try Fixture.package("enumerated").model.functionDescription().inputs.first?.type
        #expect(
            list
                == .multiArray(
                    ArrayFeature(shape: [2, 4], dataType: .float32, flexibility: .enumerated([[2, 4], [5, 4]]))))
        let input = try Fixture.package("flexible").function().inputs.first?.type
        #expect(input == .tensor(TensorType(.float32, [.unknown(variadic: false), .fixed(4)])))
    }

    @Test func classifier() throws {
        let package = try Fixture.package("classifier")
        let described = try package.model.functionDescription()
        #expect(described.predictedFeatureName == "classLabel")
        #expect(described.outputs.first { $0.name == "classLabel" }?.type == .string)
        let probabilities = described.outputs.first { $0.name == described.predictedProbabilitiesName }
        #expect(probabilities?.type == .dictionary(key: .string))
        let classes = try package.function().operation("classify")?.inputs["classes"]?.first
        guard case .value(let list)? = classes, case .list(let labels) = list.payload else {
            Issue.record("the labels are not a literal list")
            return
        }
        #expect(labels.map(\.payload) == [.strings(["cat"]), .strings(["dog"]), .strings(["élan"])])
    }

    @Test func controlFlow() throws {
        let function = try Fixture.package("control").function()
        let loop = try #require(function.operation("while_loop"))
        #expect(loop.blocks.count == 2)
        #expect(loop.blocks[0].inputs.map(\.name) == loop.blocks[1].inputs.map(\.name))
        #expect(loop.inputs["loop_vars"]?.count == 2)
        let cond = try #require(function.operation("cond"))
        #expect(cond.blocks.map { $0.operations.last?.type } == ["mul", "identity"])
    }

    @Test func otherKindsAreNamed() throws {
        let package = try Fixture.package("neural.mlmodel")
        #expect(throws: FormatError.unsupportedKind("neuralNetwork")) { try package.function() }
        #expect(try package.model.functionDescription().inputs.map(\.name) == ["x"])
    }

    @Test(arguments: Fixture.names) func memoryEqualsFiles(_ name: String) throws {
        let memory = try Fixture.package(model: Fixture.modelBytes(name), weights: Fixture.weightBytes(name))
        #expect(try memory.model == Fixture.package(name).model)
    }

    @Test(arguments: Fixture.names) func whatIsWrittenIsTheSame(_ name: String) throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: url) }
        try Fixture.package(model: Fixture.modelBytes(name), weights: Fixture.weightBytes(name)).write(to: url.path)
        #expect(try Package(contentsOf: url.path).model == Fixture.package(name).model)
        let weights = try Fixture.weightBytes(name)
        if let weights { #expect(try Fixture.bytes(url.path + Fixture.weightPath) == weights) }
        #expect(throws: FormatError.io(path: url.path + Fixture.modelPath, code: EEXIST)) {
            try Fixture.package(name).write(to: url.path)
        }
    }
}

/// Paths and manifests that are not packages.
@Suite struct ForeignPathTests {
    private func directory(_ files: [String: String]) throws -> String {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        for (name, text) in files {
            let file = url.appendingPathComponent(name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        return url.path
    }

    private func error(_ files: [String: String]) throws -> FormatError? {
        let path = try directory(files)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return #expect(throws: FormatError.self) { try Package(contentsOf: path) }
    }

    @Test func nothingThere() {
        #expect(throws: FormatError.io(path: "/nowhere/at.all", code: ENOENT)) {
            try Package(contentsOf: "/nowhere/at.all")
        }
    }

    @Test func directories() throws {
        guard case .notAPackage(_, .noManifest)? = try error(["other": ""]) else { throw Unexpected() }
        guard case .notAPackage(_, .compiledByApple)? = try error(["coremldata.bin": ""]) else { throw Unexpected() }
        guard case .notAPackage(_, .badManifest)? = try error(["Manifest.json": "{"]) else { throw Unexpected() }
        guard case .notAPackage(_, .badManifest)? = try error(["Manifest.json": ""]) else { throw Unexpected() }
        let noItem = #"{"rootModelIdentifier": "a", "itemInfoEntries": {}}"#
        guard case .notAPackage(_, .noModelItem)? = try error(["Manifest.json": noItem]) else { throw Unexpected() }
        let outside = #"{"rootModelIdentifier": "a", "itemInfoEntries": {"a": {"path": "../../etc/passwd"}}}"#
        guard case .notAPackage(_, .unsafePath)? = try error(["Manifest.json": outside]) else { throw Unexpected() }
        let missing = #"{"rootModelIdentifier": "a", "itemInfoEntries": {"a": {"path": "model"}}}"#
        guard case .io? = try error(["Manifest.json": missing]) else { throw Unexpected() }
        let empty = try error(["Manifest.json": missing, "Data/model": ""])
        #expect(empty == .missing(field: "type", message: "Model"))
    }

    @Test func namesAreTakenFromTheManifest() throws {
        let manifest = #"{"rootModelIdentifier": "a", "itemInfoEntries": {"a": {"path": "deep/er/some.file"}}}"#
        let path = try directory(["Manifest.json": manifest])
        defer { try? FileManager.default.removeItem(atPath: path) }
        let folder = path + "/Data/deep/er/"
        try FileManager.default.createDirectory(atPath: folder + "weights", withIntermediateDirectories: true)
        try Data(try Fixture.modelBytes("linear32")).write(to: URL(fileURLWithPath: folder + "some.file"))
        #expect(throws: FormatError.badBlob(file: "@model_path/weights/weight.bin", offset: 0, .noSuchFile)) {
            try Package(contentsOf: path)
        }
        let weights = try #require(try Fixture.weightBytes("linear32"))
        try Data(weights).write(to: URL(fileURLWithPath: folder + "weights/weight.bin"))
        #expect(try Package(contentsOf: path + "/").function().opset == "CoreML7")
    }

    @Test func devicesAreNotRead() {
        #expect(throws: FormatError.notAPackage(path: "/dev/zero", .notAFile)) { try Package(contentsOf: "/dev/zero") }
    }

    private struct Unexpected: Error {}
}
