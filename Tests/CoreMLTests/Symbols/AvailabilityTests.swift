// Every use that the RLX library makes of newer Core ML stands under a check of the system's version. The compiler
// looks only on Apple systems; here it is made to report each use as a deprecation, and the text is searched for checks.
import Foundation
import Testing

@Suite struct AvailabilityTests {
    @Test func everyUseIsGuarded() throws {
        let uses = try NewerUse.inRLX()
        #expect(!uses.isEmpty, "the library uses functionName, which is newer; the search itself must be broken")
        let bare = try uses.filter { try !Guards(file: $0.file).at(line: $0.line).covers($0.needed) }
        #expect(bare.isEmpty, "\(bare.map(\.description).joined(separator: "\n"))")
    }

    @Test func guardsAreFound() {
        let guards = Guards(
            """
            func a() {
                if #available(macOS 15, iOS 18, *) {
                    new()
                }
                old()
                guard #available(macOS 15.1, iOS 18.1, *) else { return }
                new()
            }
            @available(macOS 16, iOS 19, *)
            extension B {
                func c() {
                    new()
                }
            }
            old()
            """)
        #expect(
            [3, 5, 7, 12, 15].map { guards.at(line: $0) } == [
                Availability(macOS: 15, iOS: 18), .base, Availability(macOS: 15.1, iOS: 18.1),
                Availability(macOS: 16, iOS: 19), .base,
            ])
    }
}

/// One place that names a symbol newer than the package's own platforms.
private struct NewerUse: CustomStringConvertible {
    let file: String
    let line: Int
    let symbol: String
    let needed: Availability

    var description: String { "\(file):\(line): \(symbol) needs \(needed)" }

    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources")

    static func inRLX() throws -> [NewerUse] {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("availability-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let module = try files("CoreML").map { file in
            let copy = folder.appendingPathComponent(file.lastPathComponent)
            let text = try String(contentsOf: file, encoding: .utf8)
            try text.replacing(#/@available\((macOS [\d.]+, iOS [\d.]+), \*\)/#) {
                "@available(*, deprecated, message: \"\($0.1)\")"
            }.write(to: copy, atomically: true, encoding: .utf8)
            return copy.path
        }
        let common = Toolchain.searchPaths + ["-swift-version", "6", "-package-name", "rlx_swift"]
        let output = folder.appendingPathComponent("CoreML.swiftmodule").path
        _ = try Toolchain.run(
            "swiftc", ["-emit-module", "-module-name", "CoreML", "-o", output, "-suppress-warnings"] + common + module)
        let report = try Toolchain.run(
            "swiftc", ["-typecheck", "-module-name", "RLX", "-I", folder.path] + common + files("RLX").map(\.path))
        return report.matches(of: #/(.+?):(\d+):\d+: warning: '(.+?)' is deprecated: macOS ([\d.]+), iOS ([\d.]+)/#)
            .compactMap { match in
                guard let line = Int(match.2), let needed = Availability("\(match.4)/\(match.5)") else { return nil }
                return NewerUse(file: String(match.1), line: line, symbol: String(match.3), needed: needed)
            }
    }

    private static func files(_ target: String) throws -> [URL] {
        try FileManager.default.subpathsOfDirectory(atPath: sources.appendingPathComponent(target).path)
            .filter { $0.hasSuffix(".swift") }.sorted()
            .map { sources.appendingPathComponent(target).appendingPathComponent($0) }
    }
}

/// Which version is known to be there in each line of a source file.
private struct Guards {
    private let known: [Availability]

    init(file: String) throws { self.init(try String(contentsOfFile: file, encoding: .utf8)) }

    init(_ text: String) {
        var scopes = [Availability.base]
        var next: Availability?
        var known: [Availability] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let code = String(line).components(separatedBy: "//")[0]
            let stated = code.firstMatch(of: #/available\(macOS ([\d.]+), iOS ([\d.]+), \*\)/#)
                .flatMap { Availability("\($0.1)/\($0.2)") }
            let isGuard = code.contains("guard #available")
            if !isGuard, let stated { next = stated }
            for character in code {
                if character == "{" {
                    scopes.append(next ?? scopes[scopes.count - 1])
                    next = nil
                }
                if character == "}", scopes.count > 1 { scopes.removeLast() }
            }
            if isGuard, let stated {
                scopes[scopes.count - (code.contains("{") && !code.contains("}") ? 2 : 1)] = stated
            }
            known.append(next ?? scopes[scopes.count - 1])
        }
        self.known = known
    }

    func at(line: Int) -> Availability { known.indices.contains(line - 1) ? known[line - 1] : .base }
}
