// MIL.proto's programs, functions, blocks and operations into the values of Program.swift.

extension Program {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init(functions: [:])
        while let field = try reader.next(2) {
            let (name, function) = try mapEntry(field, "functions", Function.init(decoding:))
            functions[name] = function
        }
    }
}

extension Function {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init(inputs: [], opset: "", specializations: [:])
        while let field = try reader.next() {
            switch field.number {
            case 1: inputs.append(try NamedType(decoding: field.reader("NamedValueType")))
            case 2: opset = try field.string()
            case 3:
                let (name, block) = try mapEntry(field, "block_specializations", Block.init(decoding:))
                specializations[name] = block
            default: break
            }
        }
    }
}

extension Block {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init(outputs: [], operations: [])
        while let field = try reader.next() {
            switch field.number {
            case 1: inputs.append(try NamedType(decoding: field.reader("NamedValueType")))
            case 2: outputs.append(try field.string())
            case 3: operations.append(try Operation(decoding: field.reader("Operation")))
            default: break
            }
        }
    }
}

extension Operation {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init(type: "", outputs: [])
        while let field = try reader.next() {
            switch field.number {
            case 1: type = try field.string()
            case 2:
                let (name, bindings) = try mapEntry(field, "inputs", bindings(decoding:))
                inputs[name] = bindings
            case 3: outputs.append(try NamedType(decoding: field.reader("NamedValueType")))
            case 4: blocks.append(try Block(decoding: field.reader("Block")))
            case 5:
                let (name, value) = try mapEntry(field, "attributes", Value.init(decoding:))
                attributes[name] = value
            default: break
            }
        }
    }
}

private func bindings(decoding reader: consuming WireReader) throws(FormatError) -> [Binding] {
    var bindings: [Binding] = []
    while let field = try reader.next(1) {
        bindings.append(try Binding(decoding: field.reader("Binding")))
    }
    return bindings
}

extension Binding {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        var binding: Binding?
        while let field = try reader.next() {
            switch field.number {
            case 1: binding = .name(try field.string())
            case 2: binding = .value(try Value(decoding: field.reader("Value")))
            default: break
            }
        }
        guard let binding else { throw .missing(field: "name or value", message: "Binding") }
        self = binding
    }
}

extension NamedType {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        var name = ""
        var type: ValueType?
        while let field = try reader.next() {
            switch field.number {
            case 1: name = try field.string()
            case 2: type = try ValueType(decoding: field.reader("ValueType"))
            default: break
            }
        }
        guard let type else { throw .missing(field: "type", message: "value '\(name)'") }
        self.init(name: name, type: type)
    }
}

/// An entry of a protobuf map from strings: absent keys are empty strings.
private func mapEntry<T>(
    _ field: WireField, _ map: String, _ decode: (consuming WireReader) throws(FormatError) -> T
) throws(FormatError) -> (String, T) {
    var reader = try field.reader(map)
    var key = ""
    var value: T?
    while let part = try reader.next() {
        switch part.number {
        case 1: key = try part.string()
        case 2: value = try decode(part.reader("\(map)['\(key)']"))
        default: break
        }
    }
    guard let value else { throw .missing(field: "value", message: "\(map)['\(key)']") }
    return (key, value)
}
