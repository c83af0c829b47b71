// Where the raw data of a blob-file constant comes from: the joint between a package and whoever reads its weights.

/// The data of one record of a blob file.
public struct Blob: @unchecked Sendable {
    public let dataType: DataType
    /// Little endian and row-major, sub-byte types packed from the low bit on; valid while `owner` lives.
    public let bytes: UnsafeRawBufferPointer
    /// Unused high bits of the last byte; zero unless the type is narrower than a byte.
    public let paddingBits: Int
    /// Keeps `bytes` valid: a mapped file, a buffer.
    public let owner: AnyObject

    public init(dataType: DataType, bytes: UnsafeRawBufferPointer, paddingBits: Int = 0, owner: AnyObject) {
        self.dataType = dataType
        self.bytes = bytes
        self.paddingBits = paddingBits
        self.owner = owner
    }

    /// The number of elements that the bytes hold.
    public var count: Int { (bytes.count * 8 - paddingBits) / max(dataType.bitWidth, 1) }
}

public protocol BlobSource {
    /// The record at `offset` of the file `fileName`, both as a `Value.Payload.blob` holds them.
    func blob(fileName: String, offset: UInt64) throws -> Blob

    /// Throws when bytes that were read since the source was opened were not those of the file any more.
    func verify() throws
}
