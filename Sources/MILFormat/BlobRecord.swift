// Weight files: finding one record and checking it against the file. Knows no shapes.

extension Blob {
    private static let alignment = 64
    private static let sentinel: UInt32 = 0xDEAD_BEEF

    /// The record at `offset` of `file`, which holds a whole weight file.
    init(_ file: FileBytes, name: String, offset: UInt64) throws(FormatError) {
        func fault(_ fault: FormatError.BlobFault) -> FormatError {
            .badBlob(file: name, offset: offset, fault)
        }
        let bytes = file.buffer
        guard bytes.count >= Self.alignment, bytes.word(at: 4) == 2 else { throw fault(.badHeader) }
        guard let record = Int(exactly: offset), record <= bytes.count - Self.alignment else {
            throw fault(.outOfBounds)
        }
        guard record >= Self.alignment, record % Self.alignment == 0 else { throw fault(.misaligned) }
        guard bytes.word(at: record) == Self.sentinel else { throw fault(.badSentinel) }
        let code = bytes.word(at: record + 4)
        guard let dataType = DataType(blobCode: code) else { throw fault(.unknownType(code)) }
        guard let size = Int(exactly: bytes.longWord(at: record + 8)),
            let start = Int(exactly: bytes.longWord(at: record + 16)),
            start <= bytes.count, size <= bytes.count - start
        else { throw fault(.outOfBounds) }
        guard start % Self.alignment == 0 else { throw fault(.misaligned) }
        let padding = dataType.bitWidth < 8 ? bytes.longWord(at: record + 24) : 0
        guard padding < 8, size > 0 || padding == 0, (size * 8 - Int(padding)) % dataType.bitWidth == 0 else {
            throw fault(.badPadding)
        }
        self.init(
            dataType: dataType, bytes: UnsafeRawBufferPointer(rebasing: bytes[start..<start + size]),
            paddingBits: Int(padding), owner: file)
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func word(at offset: Int) -> UInt32 {
        UInt32(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    fileprivate func longWord(at offset: Int) -> UInt64 {
        UInt64(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}

extension DataType {
    /// Codes of weight files, which are not those of `MIL.proto`.
    fileprivate init?(blobCode: UInt32) {
        let types: [DataType] = [
            .float16, .float32, .uint8, .int8, .bfloat16, .int16, .uint16, .int4, .uint1, .uint2, .uint4, .uint3,
            .uint6, .int32, .uint32, .float8E4M3FN, .float8E5M2,
        ]
        guard (1...UInt32(types.count)).contains(blobCode) else { return nil }
        self = types[Int(blobCode) - 1]
    }
}
