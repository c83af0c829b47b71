#if os(Linux)
// Compiled models on disk: found again, made again when stale, and never in the way.
import CoreML
import Foundation
import MILFormat
import Testing

@testable import RLX

@Suite struct CompiledModelCacheTests {
    private let root = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

    /// Loads a fixture's model through the cache and tells what that took.
    private func load(_ name: String, system: String = "one") throws -> CompiledModelCache.Outcome {
        let (model, outcome) = try CompiledModelCache(root: root, system: system).model(
            of: Package(contentsOf: Fixture.url(name).path),
            compile: { try MLModel.compileModel(at: Fixture.url(name)) },
            load: { try MLModel(contentsOf: $0) })
        #expect(!model.modelDescription.inputDescriptionsByName.isEmpty)
        return outcome
    }

    private var entries: [String] {
        (try? FileManager.default.subpathsOfDirectory(atPath: root.path).filter { $0.hasSuffix(".mlmodelc") }) ?? []
    }

    @Test func hits() throws {
        defer { try? FileManager.default.removeItem(at: root) }
        #expect(try load("linear32") == .compiled)
        #expect(try load("linear32") == .found)
        #expect(try load("linear16") == .compiled)
        #expect(entries.count == 2)
    }

    @Test func anotherSystemCompilesAnew() throws {
        defer { try? FileManager.default.removeItem(at: root) }
        #expect(try load("linear32", system: "Version 14.5 (Build 23F79)") == .compiled)
        #expect(try load("linear32", system: "Version 14.6 (Build 23G80)") == .compiled)
        #expect(entries == [try #require(entries.first { $0.hasPrefix("Version-14-6") })])
    }

    @Test func staleEntriesAreReplaced() throws {
        defer { try? FileManager.default.removeItem(at: root) }
        #expect(try load("linear32") == .compiled)
        let entry = root.appendingPathComponent(try #require(entries.first))
        try FileManager.default.removeItem(at: entry.appendingPathComponent("Manifest.json"))
        #expect(try load("linear32") == .replacedStale)
        #expect(try load("linear32") == .found)
    }

    @Test func aFolderThatCannotBeWrittenIsNoObstacle() throws {
        defer { try? FileManager.default.removeItem(at: root) }
        try Data().write(to: root)
        #expect(try load("linear32") == .compiled)
        #expect(try load("linear32") == .compiled)
    }

    @Test func sessionsUseIt() throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let cache = CompiledModelCache(root: root, system: "one")
        try CompiledModelCache.$current.withValue(cache) {
            try Way.coreML { options in
                var losses: [Float] = []
                for _ in 0..<2 { losses.append(try Regression(options).step()) }
                #expect(losses[0] == losses[1])
            }
        }
        #expect(entries.count == 1)
    }
}
#endif
