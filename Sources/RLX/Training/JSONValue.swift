// Any JSON, for data that is carried along and given back. Knows no format.

/// A JSON value. A number without a fraction is an `integer`, however it was written.
enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])
}

/// How deep a document may nest; far below what a small thread's stack takes.
let deepestJSON = 64

extension Decoder {
    func requireShallow() throws {
        guard codingPath.count <= deepestJSON else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: Array(codingPath.prefix(4)), debugDescription: "it is nested too deeply"))
        }
    }
}

extension JSONValue: Codable {
    init(from decoder: any Decoder) throws {
        try decoder.requireShallow()
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? decoder.unkeyedContainer() {
            self = .array(try Self.elements(value))
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    private static func elements(_ container: any UnkeyedDecodingContainer) throws -> [JSONValue] {
        var container = container
        var values: [JSONValue] = []
        while !container.isAtEnd { values.append(try container.decode(JSONValue.self)) }
        return values
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }
}

/// A number that may be none of JSON's, written as text: "1.5", "nan", "-inf".
struct TextDouble: Codable, Hashable, Sendable {
    let value: Double

    init(_ value: Double) { self.value = value }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = Double(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "it is no number")
        }
        self.value = value
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode("\(value)")
    }
}
