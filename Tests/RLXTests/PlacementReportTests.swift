#if os(Linux)
// Plans of models on disk, as our module gives them: the CPU for whatever runs.
import CoreML
import Foundation
import MILFormat
import Testing

@testable import RLX

@Suite struct PlacementReportTests {
    private func report(_ url: URL, function: String? = nil) async throws -> PlacementReport {
        try await Device.$coreMLIsPresent.withValue(true) {
            try await PlacementReport.load(contentsOf: url, function: function, units: .cpuAndGPU)
        }
    }

    @Test func program() async throws {
        let report = try await self.report(Fixture.url("linear32"))
        let body = try #require(try Package(contentsOf: Fixture.url("linear32").path).function().body)
        let run = body.operations.filter { $0.type != "const" }
        #expect(report.steps.map(\.outputs) == run.map { $0.outputs.map(\.name) })
        #expect(report.steps.allSatisfy { $0.preferred == .cpu && $0.supported == [.cpu] && $0.function == "main" })
        #expect(report.counts == [.cpu: run.count])
        #expect(report.steps.first?.operation.hasPrefix("ios") == true)
    }

    @Test func branches() async throws {
        let operations = try await report(Fixture.url("control")).steps.map { $0.operation.split(separator: ".").last }
        let body = try #require(try Package(contentsOf: Fixture.url("control").path).function().body)
        func flattened(_ block: Block) -> [String] {
            block.operations.filter { $0.type != "const" }.flatMap { [$0.type] + $0.blocks.flatMap(flattened) }
        }
        #expect(operations.compactMap { $0.map(String.init) } == flattened(body))
    }

    @Test func functions() async throws {
        let url = Fixture.url("functions")
        #expect(Set(try await report(url, function: "second").steps.map(\.function)) == ["second"])
        let standard = try Package(contentsOf: url.path).model.defaultFunctionName
        #expect(Set(try await report(url).steps.map(\.function)) == [standard])
        let error = await #expect(throws: RLXError.self) { try await report(url, function: "third") }
        #expect(error?.code == .notFound && error?.subject == "third")
    }

    @Test func networkAndCompiledModel() async throws {
        let compiled = try await MLModel.compileModel(at: Fixture.network("mlp_sgd"))
        defer { try? FileManager.default.removeItem(at: compiled.deletingLastPathComponent()) }
        let report = try await self.report(compiled)
        #expect(report.steps.contains { $0.operation == "innerProduct" && $0.function.isEmpty })
        let source = try await self.report(Fixture.network("mlp_sgd"))
        #expect(report == source)
    }

    @Test func json() async throws {
        let text = try await report(Fixture.url("linear32")).json()
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect(object["units"] as? Int == 1)
        let steps = try #require(object["steps"] as? [[String: Any]])
        #expect((object["counts"] as? [String: Int]) == ["cpu": steps.count])
        #expect(Set(steps[0].keys) == ["function", "operation", "outputs", "preferred", "supported"])
    }

    @Test func failures() async throws {
        let nowhere = URL(fileURLWithPath: "/nowhere.mlpackage")
        let missing = await #expect(throws: RLXError.self) { try await report(nowhere) }
        #expect(missing?.code == .io)
        await Device.$coreMLIsPresent.withValue(false) {
            let absent = await #expect(throws: RLXError.self) {
                try await PlacementReport.load(contentsOf: Fixture.url("linear32"))
            }
            #expect(absent?.code == .unavailable)
        }
        try await Device.$coreMLIsPresent.withValue(true) {
            let report = try await PlacementReport.load(contentsOf: Fixture.url("linear32"))
            #expect(!report.steps.isEmpty)
        }
    }
}
#endif
