// The public symbols of a built module, as the compiler tells them.
import Foundation

/// What a symbol graph says of one symbol.
struct Symbol {
    let kind: String
    let owner: String
    let name: String
    let declaration: String
    let availability: Availability?
    /// Refines an inherited member.
    var isOverride = false

    var path: String { owner.isEmpty ? name : owner + "." + name }
    var isType: Bool {
        ["swift.class", "swift.struct", "swift.enum", "swift.protocol"].contains(kind)
    }
    var key: String { owner + " | " + canonical(declaration) }
}

struct SymbolGraph {
    private(set) var symbols: [Symbol] = []
    /// Names of superclasses and protocols by a type's path.
    private(set) var conformances: [String: Set<String>] = [:]

    /// The module of the build that this test belongs to.
    static func ofCoreML() throws -> SymbolGraph {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("symbols-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let arguments = ["symbolgraph-extract", "-module-name", "CoreML", "-minimum-access-level", "public"]
        _ = try Toolchain.run(
            "swift", arguments + Toolchain.searchPaths + ["-target", Toolchain.target, "-output-dir", folder.path])
        var graph = SymbolGraph()
        for file in ["CoreML.symbols.json", "CoreML@Swift.symbols.json"] {
            let data = try Data(contentsOf: folder.appendingPathComponent(file))
            try graph.add(JSONDecoder().decode(GraphFile.self, from: data))
        }
        return graph
    }

    /// Without what the compiler makes by itself.
    private mutating func add(_ file: GraphFile) {
        let overriding = Set(file.relationships.filter { $0.kind == "overrides" }.map(\.source))
        var paths: [String: String] = [:]
        for symbol in file.symbols where !symbol.identifier.precise.contains("::SYNTHESIZED::") {
            paths[symbol.identifier.precise] = symbol.pathComponents.joined(separator: ".")
            symbols.append(Symbol(symbol, isOverride: overriding.contains(symbol.identifier.precise)))
        }
        for relation in file.relationships where ["conformsTo", "inheritsFrom"].contains(relation.kind) {
            guard let path = paths[relation.source] else { continue }
            let name = relation.targetFallback.map { String($0.split(separator: ".").last ?? "") }
            conformances[path, default: []].insert(name ?? paths[relation.target] ?? relation.target)
        }
    }
}

extension Symbol {
    fileprivate init(_ symbol: GraphFile.Symbol, isOverride: Bool) {
        let domains = symbol.availability ?? []
        func version(_ domain: String) -> Double? {
            guard let introduced = domains.first(where: { $0.domain == domain })?.introduced else { return nil }
            return Double("\(introduced.major).\(introduced.minor ?? 0)")
        }
        var availability: Availability?
        if let macOS = version("macOS"), let iOS = version("iOS") { availability = .init(macOS: macOS, iOS: iOS) }
        self.init(
            kind: symbol.kind.identifier, owner: symbol.pathComponents.dropLast().joined(separator: "."),
            name: symbol.pathComponents.last ?? "",
            declaration: (symbol.declarationFragments ?? []).map(\.spelling).joined(), availability: availability,
            isOverride: isOverride)
    }
}

private struct GraphFile: Decodable {
    struct Kind: Decodable { let identifier: String }
    struct Identifier: Decodable { let precise: String }
    struct Fragment: Decodable { let spelling: String }
    struct Version: Decodable {
        let major: Int
        let minor: Int?
    }
    struct Domain: Decodable {
        let domain: String?
        let introduced: Version?
    }
    struct Symbol: Decodable {
        let kind: Kind
        let identifier: Identifier
        let pathComponents: [String]
        let declarationFragments: [Fragment]?
        let availability: [Domain]?
    }
    struct Relationship: Decodable {
        let kind: String
        let source: String
        let target: String
        let targetFallback: String?
    }
    let symbols: [Symbol]
    let relationships: [Relationship]
}

/// The compiler beside us, and the modules of the running test's own build.
enum Toolchain {
    struct Failed: Error, CustomStringConvertible { let description: String }

    static let buildFolder = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent()

    static var searchPaths: [String] {
        let targets = (try? FileManager.default.contentsOfDirectory(atPath: buildFolder.path)) ?? []
        let ofC = targets.map { buildFolder.appendingPathComponent($0 + "/module.modulemap").path }
            .filter { FileManager.default.fileExists(atPath: $0) }
        return ["-I", buildFolder.appendingPathComponent("Modules").path]
            + ofC.sorted().flatMap { ["-Xcc", "-fmodule-map-file=" + $0] }
    }

    #if arch(arm64)
    static let target = "aarch64-unknown-linux-gnu"
    #else
    static let target = "x86_64-unknown-linux-gnu"
    #endif

    /// What the tool printed, on both channels.
    static func run(_ tool: String, _ arguments: [String]) throws -> String {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [tool] + arguments
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(description: "\(tool) \(arguments[0]): \(output)") }
        return output
    }
}
