// MIL.proto's types and constants. A constant that gets past this file holds as many elements as its type says.

extension ValueType {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        var type: ValueType?
        while let field = try reader.next() {
            switch field.number {
            case 1: type = .tensor(try TensorType(decoding: field.reader("TensorType")))
            case 2: type = try listType(field.reader("ListType"))
            case 3: type = .tuple(try tupleTypes(field.reader("TupleType")))
            case 4: type = try dictionaryType(field.reader("DictionaryType"))
            case 5: type = .state(try wrappedTensor(field.reader("StateType")))
            default: break
            }
        }
        guard let type else { throw .missing(field: "type", message: "ValueType") }
        self = type
    }
}

private func listType(_ reader: consuming WireReader) throws(FormatError) -> ValueType {
    var element: ValueType?
    var length = Dimension.unknown(variadic: false)
    while let field = try reader.next() {
        switch field.number {
        case 1: element = try ValueType(decoding: field.reader("ValueType"))
        case 2: length = try Dimension(decoding: field.reader("Dimension"))
        default: break
        }
    }
    guard let element else { throw .missing(field: "type", message: "ListType") }
    return .list(element, length: length)
}

private func tupleTypes(_ reader: consuming WireReader) throws(FormatError) -> [ValueType] {
    var types: [ValueType] = []
    while let field = try reader.next(1) {
        types.append(try ValueType(decoding: field.reader("ValueType")))
    }
    return types
}

private func dictionaryType(_ reader: consuming WireReader) throws(FormatError) -> ValueType {
    var key: ValueType?
    var value: ValueType?
    while let field = try reader.next() {
        switch field.number {
        case 1: key = try ValueType(decoding: field.reader("ValueType"))
        case 2: value = try ValueType(decoding: field.reader("ValueType"))
        default: break
        }
    }
    guard let key, let value else { throw .missing(field: "key or value type", message: "DictionaryType") }
    return .dictionary(key: key, value: value)
}

private func wrappedTensor(_ reader: consuming WireReader) throws(FormatError) -> TensorType {
    var tensor: TensorType?
    while let field = try reader.next(1) {
        guard case .tensor(let type) = try ValueType(decoding: field.reader("ValueType")) else {
            throw .missing(field: "tensor type", message: "StateType")
        }
        tensor = type
    }
    guard let tensor else { throw .missing(field: "tensor type", message: "StateType") }
    return tensor
}

extension TensorType {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        var dataType: DataType?
        var rank: WireField?
        var dimensions: [Dimension] = []
        while let field = try reader.next() {
            switch field.number {
            case 1: dataType = try field.enumeration(DataType.self)
            case 2: rank = field
            case 3: dimensions.append(try Dimension(decoding: field.reader("Dimension")))
            default: break
            }
        }
        guard let dataType else { throw .missing(field: "dataType", message: "TensorType") }
        if let rank, !dimensions.contains(.unknown(variadic: true)), try rank.int64() != Int64(dimensions.count) {
            throw rank.fault(.rankMismatch)
        }
        self.init(dataType, dimensions)
    }
}

extension Dimension {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        var dimension: Dimension?
        while let field = try reader.next() {
            switch field.number {
            case 1:
                var size = 0
                var constant = try field.reader("ConstantDimension")
                while let part = try constant.next(1) { size = try part.size() }
                dimension = .fixed(size)
            case 2:
                var variadic = false
                var unknown = try field.reader("UnknownDimension")
                while let part = try unknown.next(1) { variadic = try part.bool() }
                dimension = .unknown(variadic: variadic)
            default: break
            }
        }
        guard let dimension else { throw .missing(field: "size", message: "Dimension") }
        self = dimension
    }
}

extension Value {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        var type: ValueType?
        var payload: Payload?
        while let field = try reader.next() {
            switch field.number {
            case 2: type = try ValueType(decoding: field.reader("ValueType"))
            case 3: payload = try immediate(field.reader("ImmediateValue"))
            case 5: payload = try blobReference(field.reader("BlobFileValue"))
            default: break
            }
        }
        guard let type else { throw .missing(field: "type", message: "Value") }
        guard let payload else { throw .missing(field: "payload", message: "Value") }
        self.init(type: type, payload: payload)
        try checkElementCount()
    }

    private func checkElementCount() throws(FormatError) {
        guard case .tensor(let tensor) = type, let shape = tensor.shape else { return }
        guard let (got, bits) = payload.elements else { return }
        let (count, overflow) = shape.reduce((1, false)) { product, size in
            let (next, overflow) = product.0.multipliedReportingOverflow(by: size)
            return (next, product.1 || overflow)
        }
        let expected: Int
        if bits {
            let (total, tooMany) = count.multipliedReportingOverflow(by: tensor.dataType.bitWidth)
            expected = overflow || tooMany ? .max : total / 8 + (total % 8 == 0 ? 0 : 1)
        } else {
            expected = overflow ? .max : count
        }
        guard expected == got else {
            throw .constantMismatch(expected: expected, got: got, unit: bits ? "bytes" : "elements")
        }
    }
}

extension Value.Payload {
    /// What a tensor's payload holds: a number of elements, or of bytes that pack them.
    fileprivate var elements: (count: Int, areBytes: Bool)? {
        switch self {
        case .floats(let values): (values.count, false)
        case .doubles(let values): (values.count, false)
        case .ints(let values): (values.count, false)
        case .longInts(let values): (values.count, false)
        case .bools(let values): (values.count, false)
        case .strings(let values): (values.count, false)
        case .bytes(let values): (values.count, true)
        case .tuple, .list, .dictionary, .blob: nil
        }
    }
}

private func immediate(_ reader: consuming WireReader) throws(FormatError) -> Value.Payload {
    var payload: Value.Payload?
    while let field = try reader.next() {
        switch field.number {
        case 1: payload = try tensor(field.reader("TensorValue"))
        case 2: payload = .tuple(try values(field.reader("TupleValue")))
        case 3: payload = .list(try values(field.reader("ListValue")))
        case 4: payload = .dictionary(try pairs(field.reader("DictionaryValue")))
        default: break
        }
    }
    guard let payload else { throw .missing(field: "value", message: "ImmediateValue") }
    return payload
}

private func tensor(_ reader: consuming WireReader) throws(FormatError) -> Value.Payload {
    var payload: Value.Payload?
    while let field = try reader.next() {
        switch field.number {
        case 1: payload = .floats(try scalars(field))
        case 2: payload = .ints(try scalars(field))
        case 3: payload = .bools(try scalars(field))
        case 4: payload = .strings(try strings(field.reader("TensorValue")))
        case 5: payload = .longInts(try scalars(field))
        case 6: payload = .doubles(try scalars(field))
        case 7: payload = .bytes(try bytes(field.reader("TensorValue")))
        default: break
        }
    }
    guard let payload else { throw .missing(field: "values", message: "TensorValue") }
    return payload
}

/// The `values` of one of TensorValue's arms.
private func scalars<T: WireScalar>(_ field: WireField) throws(FormatError) -> [T] {
    var all: [T] = []
    var reader = try field.reader("TensorValue")
    while let values = try reader.next(1) { try values.append(to: &all) }
    return all
}

private func strings(_ reader: consuming WireReader) throws(FormatError) -> [String] {
    var all: [String] = []
    while let field = try reader.next(1) { all.append(try field.string()) }
    return all
}

private func bytes(_ reader: consuming WireReader) throws(FormatError) -> [UInt8] {
    var bytes: [UInt8] = []
    while let field = try reader.next(1) { bytes = Array(try field.bytes()) }
    return bytes
}

private func values(_ reader: consuming WireReader) throws(FormatError) -> [Value] {
    var values: [Value] = []
    while let field = try reader.next(1) {
        values.append(try Value(decoding: field.reader("Value")))
    }
    return values
}

private func pairs(_ reader: consuming WireReader) throws(FormatError) -> [Value.Pair] {
    var pairs: [Value.Pair] = []
    while let field = try reader.next(1) {
        var entry = try field.reader("KeyValuePair")
        var key: Value?
        var value: Value?
        while let part = try entry.next() {
            switch part.number {
            case 1: key = try Value(decoding: part.reader("Value"))
            case 2: value = try Value(decoding: part.reader("Value"))
            default: break
            }
        }
        guard let key, let value else { throw .missing(field: "key or value", message: "KeyValuePair") }
        pairs.append(Value.Pair(key: key, value: value))
    }
    return pairs
}

private func blobReference(_ reader: consuming WireReader) throws(FormatError) -> Value.Payload {
    var fileName = ""
    var offset: UInt64 = 0
    while let field = try reader.next() {
        switch field.number {
        case 1: fileName = try field.string()
        case 2: offset = try field.uint64()
        default: break
        }
    }
    return .blob(fileName: fileName, offset: offset)
}
