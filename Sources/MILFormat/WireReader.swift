// The protobuf wire format, read in place: tags, numbers, strings and nested messages. Knows no message.

/// Walks the fields of one message. Everything read is checked against the end of that message, and
/// messages cannot nest deeper than `depthLimit`, so recursive decoders need no check of their own.
struct WireReader {
    /// What protobuf's own parsers allow.
    static let depthLimit = 100

    let message: String
    private let file: UnsafeRawBufferPointer
    private var position: Int
    private let end: Int
    private let depth: Int

    /// `file` must outlive the reader and all fields read with it.
    init(_ file: UnsafeRawBufferPointer, message: String) {
        self.init(file, message: message, position: 0, end: file.count, depth: 0)
    }

    fileprivate init(_ file: UnsafeRawBufferPointer, message: String, position: Int, end: Int, depth: Int) {
        self.file = file
        self.message = message
        self.position = position
        self.end = end
        self.depth = depth
    }

    /// The next field, or nil at the end of the message. A field that is not asked about is thereby skipped.
    mutating func next() throws(FormatError) -> WireField? {
        guard position < end else { return nil }
        let start = position
        let tag = try varint()
        guard let number = Int(exactly: tag >> 3), number > 0, number < 1 << 29 else {
            throw fault(.badTag, at: start)
        }
        let content: WireField.Content
        switch tag & 7 {
        case 0: content = .varint(try varint())
        case 1: content = .fixed64(try fixed(UInt64.self))
        case 2: content = .bytes(try lengthDelimited())
        case 5: content = .fixed32(try fixed(UInt32.self))
        default: throw fault(.badTag, at: start)
        }
        return WireField(
            number: number, message: message, content: content, file: file, start: start, depth: depth)
    }

    /// The next field with all its bytes, the tag's included.
    mutating func nextWithBytes() throws(FormatError) -> (WireField, Slice<UnsafeRawBufferPointer>)? {
        let start = position
        guard let field = try next() else { return nil }
        return (field, file[start..<position])
    }

    /// The next field of that number; others are skipped.
    mutating func next(_ number: Int) throws(FormatError) -> WireField? {
        while let field = try next() {
            if field.number == number { return field }
        }
        return nil
    }

    mutating func varint() throws(FormatError) -> UInt64 {
        let start = position
        var result: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard position < end else { throw fault(.truncated, at: start) }
            let byte = file[position]
            position += 1
            result |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return result }
        }
        throw fault(.varintTooLong, at: start)
    }

    mutating func fixed<T: FixedWidthInteger>(_ type: T.Type) throws(FormatError) -> T {
        let size = MemoryLayout<T>.size
        guard end - position >= size else { throw fault(.truncated, at: position) }
        defer { position += size }
        return T(littleEndian: file.loadUnaligned(fromByteOffset: position, as: T.self))
    }

    var isAtEnd: Bool { position >= end }

    private mutating func lengthDelimited() throws(FormatError) -> Range<Int> {
        let start = position
        guard let length = Int(exactly: try varint()), length <= end - position else {
            throw fault(.truncated, at: start)
        }
        defer { position += length }
        return position..<position + length
    }

    private func fault(_ fault: FormatError.WireFault, at offset: Int) -> FormatError {
        .malformed(message: message, offset: offset, fault)
    }
}

/// One field as it stands on the wire. The accessors throw when the field is encoded as something else.
struct WireField {
    enum Content {
        case varint(UInt64), fixed64(UInt64), fixed32(UInt32)
        case bytes(Range<Int>)
    }

    let number: Int
    let message: String
    let content: Content
    fileprivate let file: UnsafeRawBufferPointer
    fileprivate let start: Int
    fileprivate let depth: Int

    func fault(_ fault: FormatError.WireFault) -> FormatError {
        .malformed(message: message, offset: start, fault)
    }

    // MARK: Single values

    func uint64() throws(FormatError) -> UInt64 {
        guard case .varint(let value) = content else { throw fault(.wrongWireType) }
        return value
    }

    func int64() throws(FormatError) -> Int64 { Int64(bitPattern: try uint64()) }

    /// Negative numbers travel with 64 bits; protobuf keeps the low 32.
    func int32() throws(FormatError) -> Int32 { Int32(truncatingIfNeeded: try uint64()) }

    func bool() throws(FormatError) -> Bool { try uint64() != 0 }

    func size() throws(FormatError) -> Int {
        guard let value = Int(exactly: try uint64()) else { throw fault(.numberTooLarge) }
        return value
    }

    func enumeration<E: RawRepresentable>(_ type: E.Type) throws(FormatError) -> E where E.RawValue == Int32 {
        let raw = try int32()
        guard let value = E(rawValue: raw) else { throw .unknownValue(Int64(raw), of: "\(type)") }
        return value
    }

    func float() throws(FormatError) -> Float {
        guard case .fixed32(let bits) = content else { throw fault(.wrongWireType) }
        return Float(bitPattern: bits)
    }

    func double() throws(FormatError) -> Double {
        guard case .fixed64(let bits) = content else { throw fault(.wrongWireType) }
        return Double(bitPattern: bits)
    }

    func bytes() throws(FormatError) -> UnsafeRawBufferPointer {
        guard case .bytes(let range) = content else { throw fault(.wrongWireType) }
        return UnsafeRawBufferPointer(rebasing: file[range])
    }

    func string() throws(FormatError) -> String {
        let bytes = try bytes()
        let string = String(decoding: bytes, as: UTF8.self)
        guard string.utf8.elementsEqual(bytes) else { throw fault(.invalidUTF8) }
        return string
    }

    func reader(_ message: String) throws(FormatError) -> WireReader {
        guard case .bytes(let range) = content else { throw fault(.wrongWireType) }
        guard depth < WireReader.depthLimit else { throw .nestedTooDeeply(limit: WireReader.depthLimit) }
        return WireReader(file, message: message, position: range.lowerBound, end: range.upperBound, depth: depth + 1)
    }

    /// Adds the elements of a repeated field, which come packed or one at a time.
    func append<T: WireScalar>(to values: inout [T]) throws(FormatError) {
        guard case .bytes = content else { return values.append(try T(self)) }
        var packed = try reader(message)
        while !packed.isAtEnd { values.append(try T(packed: &packed)) }
    }
}

/// Numbers that repeated fields hold.
protocol WireScalar {
    init(_ field: WireField) throws(FormatError)
    init(packed reader: inout WireReader) throws(FormatError)
}

extension Int64: WireScalar {
    init(_ field: WireField) throws(FormatError) { self = try field.int64() }
    init(packed reader: inout WireReader) throws(FormatError) { self.init(bitPattern: try reader.varint()) }
}

extension Int32: WireScalar {
    init(_ field: WireField) throws(FormatError) { self = try field.int32() }
    init(packed reader: inout WireReader) throws(FormatError) { self.init(truncatingIfNeeded: try reader.varint()) }
}

extension Bool: WireScalar {
    init(_ field: WireField) throws(FormatError) { self = try field.bool() }
    init(packed reader: inout WireReader) throws(FormatError) { self = try reader.varint() != 0 }
}

extension Float: WireScalar {
    init(_ field: WireField) throws(FormatError) { self = try field.float() }
    init(packed reader: inout WireReader) throws(FormatError) { self.init(bitPattern: try reader.fixed(UInt32.self)) }
}

extension Double: WireScalar {
    init(_ field: WireField) throws(FormatError) { self = try field.double() }
    init(packed reader: inout WireReader) throws(FormatError) { self.init(bitPattern: try reader.fixed(UInt64.self)) }
}
