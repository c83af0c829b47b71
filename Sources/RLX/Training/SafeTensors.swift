// The safetensors file format: named arrays with text metadata in one file. Knows nothing of what they mean.
//
// A file is the header's length (u64, little endian), the header (JSON: dtype, shape and byte range of each array,
// and `__metadata__`, a map of text), and the arrays' bytes in C order, little endian, without gaps.

import Foundation

/// Named arrays with text metadata, as one file.
///
/// ```swift
/// let data = try SafeTensors(contentsOf: url).tensors
/// ```
public struct SafeTensors: Sendable {
    /// The tensors by name.
    public var tensors: [String: Tensor]
    /// Text beside them.
    public var metadata: [String: String]

    private static let longestHeader = 100_000_000
    private static let metadataKey = "__metadata__"

    private struct Entry: Codable {
        let dtype: String
        let shape: [Int]
        let offsets: [Int]

        enum CodingKeys: String, CodingKey {
            case dtype, shape
            case offsets = "data_offsets"
        }
    }

    /// Either an array's entry or the metadata.
    private enum Item: Codable {
        case entry(Entry)
        case metadata([String: String])

        init(from decoder: any Decoder) throws {
            if decoder.codingPath.last?.stringValue == metadataKey {
                self = .metadata(try [String: String](from: decoder))
            } else {
                self = .entry(try Entry(from: decoder))
            }
        }

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .entry(let entry): try entry.encode(to: encoder)
            case .metadata(let texts): try texts.encode(to: encoder)
            }
        }
    }

    /// Reads a file. Throws `io`, and `badPackage` with what is wrong for one that is not whole and well formed.
    public init(contentsOf url: URL) throws(RLXError) {
        try self.init(decoding: TrainingBundle.read(url), subject: url.lastPathComponent)
    }

    init(decoding data: Data, subject: String) throws(RLXError) {
        let length = data.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard data.count >= 8, length <= UInt64(min(data.count - 8, Self.longestHeader)) else {
            throw .badCheckpoint(subject, "it is no safetensors file, or not whole")
        }
        let header = data.dropFirst(8).prefix(Int(length))
        let body = data.dropFirst(8 + Int(length))
        let items: [String: Item]
        do {
            items = try JSONDecoder().decode([String: Item].self, from: Data(header))
        } catch {
            throw .undecodable(subject, error)
        }
        (tensors, metadata) = ([:], [:])
        var total = 0
        for (name, item) in items {
            switch item {
            case .metadata(let texts): metadata = texts
            case .entry(let entry):
                let tensor = try Self.tensor(name, entry, body, subject)
                total += tensor.bytes.count
                tensors[name] = tensor
            }
        }
        guard total == body.count else { throw .badCheckpoint(subject, "its arrays do not fill it") }
    }

    /// A file to be written.
    public init(tensors: [String: Tensor], metadata: [String: String] = [:]) {
        (self.tensors, self.metadata) = (tensors, metadata)
    }

    private static func tensor(
        _ name: String, _ entry: Entry, _ body: Data, _ subject: String
    ) throws(RLXError) -> Tensor {
        guard let dtype = DType.allCases.first(where: { $0.safeTensorsName == entry.dtype }) else {
            throw .badCheckpoint(subject, "the dtype \(entry.dtype) of '\(name)' is none of ours")
        }
        guard entry.offsets.count == 2, let count = elementCount(entry.shape), count <= body.count,
            0...body.count ~= entry.offsets[0], entry.offsets[0]...body.count ~= entry.offsets[1],
            entry.offsets[1] - entry.offsets[0] == count * dtype.size
        else { throw .badCheckpoint(subject, "the entry '\(name)' does not fit its arrays") }
        let start = body.startIndex + entry.offsets[0]
        return Tensor(bytes: [UInt8](body[start..<start + count * dtype.size]), dtype: dtype, shape: entry.shape)
    }

    /// Writes a file whole or not at all; one that was there stays whole until the new one is. Throws `io`.
    public func write(to url: URL) throws(RLXError) {
        let names = tensors.keys.sorted()
        var items: [String: Item] = metadata.isEmpty ? [:] : [Self.metadataKey: .metadata(metadata)]
        var end = 0
        for name in names {
            guard let tensor = tensors[name] else { continue }
            let start = end
            end += tensor.bytes.count
            let entry = Entry(dtype: tensor.dtype.safeTensorsName, shape: tensor.shape, offsets: [start, end])
            items[name] = .entry(entry)
        }
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            var header = try encoder.encode(items)
            header.append(contentsOf: [UInt8](repeating: 0x20, count: (8 - header.count % 8) % 8))
            var data = withUnsafeBytes(of: UInt64(header.count).littleEndian) { Data($0) }
            data.reserveCapacity(8 + header.count + end)
            data.append(header)
            for name in names { data.append(contentsOf: tensors[name]?.bytes ?? []) }
            try writeDurably(data, to: url)
        } catch {
            throw RLXError(.io, "'\(url.path)' cannot be written", subject: url.lastPathComponent, detail: "\(error)")
        }
    }
}

extension DType {
    fileprivate var safeTensorsName: String {
        switch self {
        case .bool: "BOOL"
        case .float16: "F16"
        case .float32: "F32"
        case .int32: "I32"
        }
    }
}
