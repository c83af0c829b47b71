// Where the raw data of a blob-file constant comes from: the joint between a package and whoever reads its weights.

/// The data of one record of a blob file.
public struct Blob: @unchecked Sendable {
    public let dataType: DataType
    /// Little endian and row-major; valid while `owner` lives.
    public let bytes: UnsafeRawBufferPointer
    /// Keeps `bytes` valid: a mapped file, a buffer.
    public let owner: AnyObject

    public init(dataType: DataType, bytes: UnsafeRawBufferPointer, owner: AnyObject) {
        self.dataType = dataType
        self.bytes = bytes
        self.owner = owner
    }
}

public protocol BlobSource {
    /// The record at `offset` of the file `fileName`, both as a `Value.Payload.blob` holds them.
    func blob(fileName: String, offset: UInt64) throws -> Blob
}
