// Apple's declarations as the data file lists them. Knows the file's format and nothing of our module.
import Foundation

/// The first macOS and iOS versions that have a symbol.
struct Availability: Hashable, CustomStringConvertible {
    var macOS: Double
    var iOS: Double

    /// What the package itself asks for.
    static let base = Availability(macOS: 14, iOS: 17)

    var needsGuard: Bool { macOS > Self.base.macOS || iOS > Self.base.iOS }
    var description: String { "macOS \(macOS), iOS \(iOS)" }

    func covers(_ other: Availability) -> Bool { macOS >= other.macOS && iOS >= other.iOS }
}

struct Declaration: Hashable {
    enum Status: Hashable {
        case present
        /// Linux has no form of a type in it.
        case absent(String)
        case missing
    }

    /// The type that it is a member of; empty for globals and types.
    let owner: String
    let text: String
    let availability: Availability
    let status: Status

    var key: String { owner + " | " + canonical(text) }
}

struct AppleType {
    let name: String
    let keyword: String
    let conformances: [String]
    /// Conformances of Apple's that our module does not have.
    let leftOut: [String]
    let availability: Availability
    let status: Declaration.Status
    var isExtension: Bool { keyword == "extension" }
}

struct AppleDeclarations {
    private(set) var types: [AppleType] = []
    private(set) var members: [Declaration] = []

    struct BadLine: Error { let line: String }

    static func load() throws -> AppleDeclarations {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Apple/declarations.txt")
        return try AppleDeclarations(String(contentsOf: file, encoding: .utf8))
    }

    init(_ text: String) throws {
        for line in text.split(separator: "\n") where !line.hasPrefix("#") && !line.allSatisfy(\.isWhitespace) {
            let parts = line.components(separatedBy: " | ").map { $0.trimmingCharacters(in: .whitespaces) }
            guard (2...3).contains(parts.count), let availability = Availability(parts[1]) else {
                throw BadLine(line: String(line))
            }
            let status = parts.count == 3 ? try Declaration.Status(parts[2], String(line)) : .present
            if line.hasPrefix(" ") {
                guard let owner = types.last else { throw BadLine(line: String(line)) }
                members.append(
                    Declaration(
                        owner: owner.name, text: parts[0], availability: availability,
                        status: owner.status == .present ? status : owner.status))
            } else if ["let ", "typealias ", "func "].contains(where: parts[0].hasPrefix) {
                members.append(Declaration(owner: "", text: parts[0], availability: availability, status: status))
            } else {
                types.append(try AppleType(parts[0], availability, status, String(line)))
            }
        }
    }
}

extension Availability {
    /// "10.13/11"
    init?(_ text: String) {
        let parts = text.split(separator: "/").map { $0.split(separator: ".").prefix(2).joined(separator: ".") }
        guard parts.count == 2, let macOS = Double(parts[0]), let iOS = Double(parts[1]) else { return nil }
        self.init(macOS: macOS, iOS: iOS)
    }
}

extension Declaration.Status {
    fileprivate init(_ text: String, _ line: String) throws {
        if text == "missing" {
            self = .missing
        } else if text.hasPrefix("absent ") {
            self = .absent(String(text.dropFirst("absent ".count)))
        } else {
            throw AppleDeclarations.BadLine(line: line)
        }
    }
}

extension AppleType {
    fileprivate init(
        _ text: String, _ availability: Availability, _ status: Declaration.Status, _ line: String
    ) throws {
        let sides = text.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
        let words = sides[0].split(separator: " ").map(String.init)
        guard words.count == 2 else { throw AppleDeclarations.BadLine(line: line) }
        let listed = sides.count == 2 ? sides[1].components(separatedBy: ", ") : []
        self.init(
            name: words[1], keyword: words[0], conformances: listed.filter { !$0.hasPrefix("-") },
            leftOut: listed.filter { $0.hasPrefix("-") }.map { String($0.dropFirst()) }, availability: availability,
            status: status)
    }
}

/// A declaration without what its users cannot tell: internal names, `let` or computed, `convenience`, spelling.
func canonical(_ declaration: String) -> String {
    var text = " " + declaration.replacingOccurrences(of: "`", with: "")
    text = text.replacing(#/\b(convenience|final|override|required|any) /#, with: "")
    text = text.trimmingCharacters(in: .whitespaces).replacing(#/\s+/#, with: " ").replacing(#/ ?: ?/#, with: ": ")
    if text.hasPrefix("subscript") || text.contains(#/func [^\w\s(]/#) {
        text = text.replacing(#/([(,] ?)\w+: /#) { "\($0.1)_: " }
    }
    text = text.replacing(#/([(,] ?)(\w+) \w+: /#) { "\($0.1)\($0.2): " }
    text = text.replacing(#/\blet /#, with: "var ")
    let isProperty = text.contains(#/^(static |class )?var /#)
    if isProperty, !text.contains("{") { text += declaration.contains("let ") ? " { get }" : " { get set }" }
    return text
}
