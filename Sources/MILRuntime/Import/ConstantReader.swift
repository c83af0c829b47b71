// Constants of a program as values of the graph: immediate or from a weight file, packed ones unpacked.
import MILFormat

/// A value that does not depend on a run.
enum Constant {
    case tensor(Storage)
    case strings([String], isScalar: Bool)
}

struct ConstantReader {
    let blobs: any BlobSource

    /// `name` and `place` are for errors.
    func read(
        _ value: Value, name: String, _ graph: GraphBuilder, _ place: RuntimeError.Place
    ) throws(RuntimeError) -> Bound {
        guard case .tensor(let type) = value.type else { throw .unsupported(.type(value.type.name), place) }
        if type.dataType == .string, case .strings(let strings) = value.payload {
            return .strings(strings, isScalar: type.dimensions.isEmpty)
        }
        guard let element = ElementType(carrying: type.dataType) else {
            throw .unsupported(.type("\(type.dataType)"), place)
        }
        guard let shape = type.shape else { throw .unsupported(.flexibleShape, place) }
        guard byteCount(element, shape) != nil else { throw .invalid(.tooLarge(shape), place) }
        if case .blob(let fileName, let offset) = value.payload {
            let blob = try blob(fileName, offset, name)
            return .view(try view(of: blob, type.dataType, element, shape, graph, place))
        }
        let storage =
            ElementType(type.dataType) == nil
            ? try Storage.unpacking(value.payload, type.dataType, as: element, shape: shape)
            : try Storage.make(value.payload, type: element, shape: shape)
        guard let storage else { throw .invalid(.constantPayload, place) }
        return .view(graph.constant(storage))
    }

    /// Throws when what was read of the weights was not theirs.
    func verify() throws(RuntimeError) {
        do { try blobs.verify() } catch { throw .unreadableWeights(reason: "\(error)") }
    }

    private func blob(_ fileName: String, _ offset: UInt64, _ name: String) throws(RuntimeError) -> Blob {
        do {
            return try blobs.blob(fileName: fileName, offset: offset)
        } catch {
            throw .unreadableConstant(name: name, reason: "\(error)")
        }
    }

    /// Used where it lies, unless it is packed or its address is not what the element type needs.
    private func view(
        of blob: Blob, _ type: DataType, _ element: ElementType, _ shape: [Int], _ graph: GraphBuilder,
        _ place: RuntimeError.Place
    ) throws(RuntimeError) -> View {
        guard blob.dataType == type, let count = elementCount(shape), blob.count == count else {
            throw .invalid(.constantPayload, place)
        }
        if ElementType(type) == nil {
            guard let storage = try Storage.unpacking(.bytes(Array(blob.bytes)), type, as: element, shape: shape) else {
                throw .invalid(.constantPayload, place)
            }
            return graph.constant(storage)
        }
        if let address = blob.bytes.baseAddress, UInt(bitPattern: address) % UInt(element.size) == 0 {
            return graph.constant(element, shape, at: address, owner: blob.owner)
        }
        let storage = try Storage(type: element, shape: shape)
        storage.bytes.copyMemory(from: blob.bytes)
        return graph.constant(storage)
    }
}

extension Storage {
    /// Elements of a type that only constants have, as `element`; nil when the payload does not fit the type.
    fileprivate static func unpacking(
        _ payload: Value.Payload, _ type: DataType, as element: ElementType, shape: [Int]
    ) throws(RuntimeError) -> Storage? {
        let storage = try Storage(type: element, shape: shape)
        guard let count = elementCount(shape) else { return nil }
        switch (payload, type) {
        case (.doubles(let values), .float64):
            guard values.count == count else { return nil }
            storage.fill(values.map { Float($0) })
        case (.longInts(let values), .int64), (.longInts(let values), .uint64):
            guard values.count == count else { return nil }
            storage.fill(values.map { Int32(clamping: $0) })
        case (.ints(let values), .uint32):
            guard values.count == count else { return nil }
            storage.fill(values.map { Int32(clamping: UInt32(bitPattern: $0)) })
        case (.bytes(let bytes), .uint32):
            guard bytes.count == 4 * count else { return nil }
            storage.fill(
                (0..<count).map { index in
                    bytes.withUnsafeBytes { raw in
                        Int32(clamping: raw.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self))
                    }
                })
        case (.bytes(let bytes), _) where type.bitWidth < 8:
            guard bytes.count >= (count * type.bitWidth + 7) / 8 else { return nil }
            unpackBits(bytes, width: type.bitWidth, isSigned: type == .int4, into: storage.bytes, count: count)
        default:
            return nil
        }
        return storage
    }
}

/// Element i lies at bits [i * width, (i + 1) * width), counted from the low bit of the first byte.
func unpackBits(
    _ packed: [UInt8], width: Int, isSigned: Bool, into target: UnsafeMutableRawBufferPointer, count: Int
) {
    let mask = UInt16(1 << width) - 1
    packed.withUnsafeBufferPointer { packed in
        for index in 0..<count {
            let bit = index * width
            let low = UInt16(packed[bit / 8])
            let high = bit / 8 + 1 < packed.count ? UInt16(packed[bit / 8 + 1]) : 0
            var value = UInt8(truncatingIfNeeded: ((high << 8 | low) >> UInt16(bit % 8)) & mask)
            if isSigned, value >> UInt8(width - 1) == 1 { value |= ~UInt8(truncatingIfNeeded: mask) }
            target[index] = value
        }
    }
}
