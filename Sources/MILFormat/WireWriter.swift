// The protobuf wire format, written. Knows no message.

struct WireWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(raw: some Sequence<UInt8>) { bytes += raw }

    mutating func append(_ number: Int, message: [UInt8]) {
        appendHeader(number, length: message.count)
        bytes += message
    }

    /// Packed.
    mutating func append(_ number: Int, floats: [Float]) {
        appendHeader(number, length: floats.count * 4)
        bytes.reserveCapacity(bytes.count + floats.count * 4)
        for value in floats { withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes += $0 } }
    }

    private mutating func appendHeader(_ number: Int, length: Int) {
        append(varint: UInt64(number) << 3 | 2)
        append(varint: UInt64(length))
    }

    private mutating func append(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
