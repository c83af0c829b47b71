// Our module's public face against Apple's: nothing lacking that is not said to lack, and nothing more.
import Foundation
import Testing

@Suite struct SymbolTests {
    private let apple: AppleDeclarations
    private let ours: SymbolGraph
    private let ourKeys: Set<String>

    private let statuses: [String: Declaration.Status]
    private static let graph = Result { try SymbolGraph.ofCoreML() }

    init() throws {
        apple = try AppleDeclarations.load()
        ours = try Self.graph.get()
        statuses = apple.statuses
        ourKeys = Set(ours.symbols.map { $0.isType ? $0.path : $0.key })
    }

    @Test func everyDeclarationOfApplesIsOurs() {
        let lacking = statuses.filter { $0.value == .present && !ourKeys.contains($0.key) }.keys.sorted()
        #expect(lacking.isEmpty, "\(lacking.joined(separator: "\n"))")
    }

    @Test func whatIsSaidToLackDoesLack() {
        let wrong = statuses.filter { $0.value != .present && ourKeys.contains($0.key) }.keys.sorted()
        #expect(wrong.isEmpty, "\(wrong.joined(separator: "\n"))")
    }

    @Test func everySymbolOfOursIsApples() {
        let types = apple.typesByName
        let foreign = ours.symbols.filter { symbol in
            if symbol.isType { return types[symbol.path].map { "swift." + $0.keyword } != symbol.kind }
            let isImplied = types[symbol.owner]?.impliedMembers.contains(symbol.name) ?? false
            return !isImplied && !symbol.isOverride && statuses[symbol.key] == nil
        }
        #expect(foreign.isEmpty, "\(foreign.map(\.key).joined(separator: "\n"))")
    }

    @Test func conformances() {
        var wrong: [String] = []
        for type in apple.types where type.status == .present && !type.isExtension {
            let has = ours.conformances[type.name] ?? []
            wrong += type.conformances.filter { $0 != "Int" && !has.contains($0) }.map { "\(type.name): \($0)" }
            wrong += type.leftOut.filter(has.contains).map { "\(type.name): -\($0)" }
            let isValueOrObject = type.keyword == "class" || type.keyword == "struct"
            if isValueOrObject, has.contains("Sendable"), !type.conformances.contains("Sendable") {
                wrong.append("\(type.name) must not be Sendable")
            }
        }
        #expect(wrong.isEmpty, "\(wrong.joined(separator: "\n"))")
    }

    /// What is newer than the package's own platforms says so, and nothing else does.
    @Test func availability() {
        let own = Dictionary(ours.symbols.map { ($0.path, $0.availability) }, uniquingKeysWith: { a, _ in a })
        let expected = apple.availabilities
        let wrong = ours.symbols.compactMap { symbol -> String? in
            guard let expected = expected[symbol.isType ? symbol.path : symbol.key] else { return nil }
            var owner = symbol.owner[...]
            var stated = [symbol.availability].compactMap(\.self)
            while !owner.isEmpty {
                if let inherited = own[String(owner)] ?? nil { stated.append(inherited) }
                owner = owner.lastIndex(of: ".").map { owner[..<$0] } ?? ""
            }
            let needed = stated.max { $1.covers($0) } ?? .base
            return needed == (expected.needsGuard ? expected : .base)
                ? nil : "\(symbol.path): \(expected), not \(needed)"
        }
        #expect(wrong.isEmpty, "\(wrong.joined(separator: "\n"))")
    }

    /// For whoever reads the test's output.
    @Test func counts() {
        let statuses = Array(statuses.values)
        let (present, missing) = (statuses.count { $0 == .present }, statuses.count { $0 == .missing })
        print(
            "Core ML: \(statuses.count) declarations, \(present) mirrored, \(missing) missing, others absent on Linux")
        #expect(present > 400)
    }
}

extension AppleDeclarations {
    fileprivate var typesByName: [String: AppleType] {
        Dictionary(uniqueKeysWithValues: types.filter { !$0.isExtension }.map { ($0.name, $0) })
    }

    fileprivate var statuses: [String: Declaration.Status] {
        Dictionary(members.map { ($0.key, $0.status) }, uniquingKeysWith: { a, _ in a })
            .merging(typesByName.mapValues(\.status)) { a, _ in a }
    }

    fileprivate var availabilities: [String: Availability] {
        Dictionary(members.map { ($0.key, $0.availability) }, uniquingKeysWith: { a, _ in a })
            .merging(typesByName.mapValues(\.availability)) { a, _ in a }
    }
}

extension AppleType {
    /// Members that a type has through what it conforms to.
    fileprivate var impliedMembers: Set<String> {
        var names: Set<String> = []
        if conformances.contains("Int") { names.insert("init(rawValue:)") }
        if conformances.contains("NSCopying") { names.insert("copy(with:)") }
        return names
    }
}
