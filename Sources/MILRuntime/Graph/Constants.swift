// Constant data on its way into the graph and out of it: payloads of the file become storage, views become numbers.
import MILFormat
import RLXKernels

extension Storage {
    /// The storage of a constant's immediate payload, or nil when the payload does not fit the type.
    static func make(_ payload: Value.Payload, type: ElementType, shape: [Int]) throws(RuntimeError) -> Storage? {
        let storage = try Storage(type: type, shape: shape)
        guard let count = elementCount(shape) else { return nil }
        switch (payload, type) {
        case (.floats(let values), .float32):
            guard values.count == count else { return nil }
            storage.bytes.copyBytes(from: values.withUnsafeBytes { Array($0) })
        case (.floats(let values), .float16):
            guard values.count == count else { return nil }
            storage.fill(values.map(rlxk_float_to_half))
        case (.ints(let values), .int32):
            guard values.count == count else { return nil }
            storage.fill(values)
        case (.ints(let values), .int16), (.ints(let values), .uint16), (.ints(let values), .int8),
            (.ints(let values), .uint8):
            guard values.count == count else { return nil }
            switch type.size {
            case 2: storage.fill(values.map(UInt16.init(truncatingIfNeeded:)))
            default: storage.fill(values.map(UInt8.init(truncatingIfNeeded:)))
            }
        case (.bools(let values), .bool):
            guard values.count == count else { return nil }
            storage.fill(values.map { $0 ? UInt8(1) : 0 })
        case (.bytes(let bytes), _):
            guard bytes.count == storage.bytes.count, type != .bool else { return nil }
            storage.bytes.copyBytes(from: bytes)
        default:
            return nil
        }
        return storage
    }

    func fill<T: BitwiseCopyable>(_ values: [T]) {
        values.withUnsafeBytes { bytes.copyMemory(from: $0) }
    }
}

extension View {
    /// Calls `body` with the offset of each element in row-major order.
    func forEachOffset(_ body: (Int) -> Void) {
        if shape.contains(0) { return }
        var index = Array(repeating: 0, count: rank)
        var position = offset
        while true {
            body(position)
            var axis = rank - 1
            while axis >= 0 {
                index[axis] += 1
                position += strides[axis]
                if index[axis] < shape[axis] { break }
                position -= strides[axis] * shape[axis]
                index[axis] = 0
                axis -= 1
            }
            if axis < 0 { return }
        }
    }
}

/// The elements of a constant view as numbers; integers up to 2^53 are exact.
func numbers(in view: View, at base: UnsafeRawPointer) -> [Double] {
    var result: [Double] = []
    result.reserveCapacity(view.count)
    view.forEachOffset { offset in
        result.append(number(at: base + offset * view.type.size, view.type))
    }
    return result
}

private func number(at address: UnsafeRawPointer, _ type: ElementType) -> Double {
    switch type {
    case .float32: Double(address.load(as: Float.self))
    case .float16: Double(rlxk_half_to_float(address.load(as: UInt16.self)))
    case .int32: Double(address.load(as: Int32.self))
    case .int16: Double(address.load(as: Int16.self))
    case .uint16: Double(address.load(as: UInt16.self))
    case .int8: Double(address.load(as: Int8.self))
    case .uint8, .bool: Double(address.load(as: UInt8.self))
    }
}

func roundToHalf(_ value: Float) -> Float { rlxk_half_to_float(rlxk_float_to_half(value)) }
