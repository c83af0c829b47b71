// Model.proto and FeatureTypes.proto into the values of Model.swift. A field that comes twice counts the last time.

extension Model {
    init(decoding file: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = WireReader(file, message: "Model")
        var version: Int32 = 0
        var isUpdatable = false
        var description = ModelDescription()
        var content: Content?
        while let field = try reader.next() {
            switch field.number {
            case 1: version = try field.int32()
            case 2: description = try ModelDescription(decoding: field.reader("ModelDescription"))
            case 10: isUpdatable = try field.bool()
            case ModelKind.mlProgram.rawValue:
                content = .program(try Program(decoding: field.reader("Program")))
            case ModelKind.neuralNetwork.rawValue, ModelKind.neuralNetworkClassifier.rawValue,
                ModelKind.neuralNetworkRegressor.rawValue:
                content = .network(try NeuralNetwork(decoding: field.reader("NeuralNetwork")))
            case let number:
                guard let kind = ModelKind(rawValue: number) else { continue }
                _ = try field.bytes()
                content = .other(kind)
            }
        }
        guard let content else { throw .missing(field: "type", message: "Model") }
        self.init(
            specificationVersion: version, isUpdatable: isUpdatable, description: description, content: content)
    }
}

extension ModelDescription {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        var only = FunctionDescription(name: "main")
        while let field = try reader.next() {
            switch field.number {
            case 1: only.inputs.append(try .init(decoding: field.reader("FeatureDescription")))
            case 10: only.outputs.append(try .init(decoding: field.reader("FeatureDescription")))
            case 11: only.predictedFeatureName = try field.string()
            case 12: only.predictedProbabilitiesName = try field.string()
            case 13: only.states.append(try .init(decoding: field.reader("FeatureDescription")))
            case 20: functions.append(try .init(decoding: field.reader("FunctionDescription")))
            case 21: defaultFunctionName = try field.string()
            case 50: trainingInputs.append(try .init(decoding: field.reader("FeatureDescription")))
            case 100: metadata = try Metadata(decoding: field.reader("Metadata"))
            default: break
            }
        }
        isMultifunction = !functions.isEmpty
        if !isMultifunction { functions = [only] }
    }
}

extension FunctionDescription {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init(name: "")
        while let field = try reader.next() {
            switch field.number {
            case 1: name = try field.string()
            case 2: inputs.append(try .init(decoding: field.reader("FeatureDescription")))
            case 3: outputs.append(try .init(decoding: field.reader("FeatureDescription")))
            case 4: predictedFeatureName = try field.string()
            case 5: predictedProbabilitiesName = try field.string()
            case 6: states.append(try .init(decoding: field.reader("FeatureDescription")))
            default: break
            }
        }
    }
}

extension Metadata {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: shortDescription = try field.string()
            case 2: versionString = try field.string()
            case 3: author = try field.string()
            case 4: license = try field.string()
            case 100:
                var entry = try field.reader("Metadata.userDefined")
                var key = ""
                var value = ""
                while let part = try entry.next() {
                    switch part.number {
                    case 1: key = try part.string()
                    case 2: value = try part.string()
                    default: break
                    }
                }
                userDefined[key] = value
            default: break
            }
        }
    }
}

extension FeatureDescription {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        var name = ""
        var shortDescription = ""
        var type: FeatureType?
        var isOptional = false
        while let field = try reader.next() {
            switch field.number {
            case 1: name = try field.string()
            case 2: shortDescription = try field.string()
            case 3: type = try FeatureType(decoding: field.reader("FeatureType"), isOptional: &isOptional)
            default: break
            }
        }
        guard let type else { throw .missing(field: "type", message: "feature '\(name)'") }
        self.init(name: name, shortDescription: shortDescription, type: type, isOptional: isOptional)
    }
}

extension FeatureType {
    fileprivate init(decoding reader: consuming WireReader, isOptional: inout Bool) throws(FormatError) {
        var type: FeatureType?
        while let field = try reader.next() {
            switch field.number {
            case 1: type = .int64
            case 2: type = .double
            case 3: type = .string
            case 4: type = .image(try ImageFeature(decoding: field.reader("ImageFeatureType")))
            case 5: type = .multiArray(try ArrayFeature(decoding: field.reader("ArrayFeatureType")))
            case 6: type = .dictionary(key: try scalarKind(field.reader("DictionaryFeatureType"), string: 2))
            case 7: type = try sequenceType(field)
            case 8: type = .state(try stateArray(field.reader("StateFeatureType")))
            case 1000: isOptional = try field.bool()
            default: break
            }
        }
        guard let type else { throw .missing(field: "type", message: "FeatureType") }
        self = type
    }
}

private func scalarKind(
    _ reader: consuming WireReader, string: Int
) throws(FormatError) -> FeatureType.ScalarKind {
    let message = reader.message
    var kind: FeatureType.ScalarKind?
    while let field = try reader.next() {
        if field.number == 1 { kind = .int64 }
        if field.number == string { kind = .string }
    }
    guard let kind else { throw .missing(field: "element type", message: message) }
    return kind
}

private func sequenceType(_ field: WireField) throws(FormatError) -> FeatureType {
    let message = "SequenceFeatureType"
    var range = SizeRange(lower: 0, upper: nil)
    var lengths = try field.reader(message)
    while let field = try lengths.next(101) {
        range = try SizeRange(decoding: field.reader("SizeRange"))
    }
    let element = try scalarKind(field.reader(message), string: 3)
    return .sequence(of: element, minimum: range.lower, maximum: range.upper)
}

private func stateArray(_ reader: consuming WireReader) throws(FormatError) -> ArrayFeature {
    var array: ArrayFeature?
    while let field = try reader.next(1) {
        array = try ArrayFeature(decoding: field.reader("ArrayFeatureType"))
    }
    guard let array else { throw .missing(field: "array type", message: "StateFeatureType") }
    return array
}

extension ArrayFeature {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        var dataType: ArrayDataType?
        var dimensions: [Int64] = []
        var flexibility = Flexibility.fixed
        var defaultValue: Fill?
        while let field = try reader.next() {
            switch field.number {
            case 1: try field.append(to: &dimensions)
            case 2: dataType = try field.enumeration(ArrayDataType.self)
            case 21: flexibility = .enumerated(try enumeratedShapes(field.reader("EnumeratedShapes")))
            case 31: flexibility = .ranges(try sizeRanges(field.reader("ShapeRange")))
            case 41: defaultValue = .int(try field.int32())
            case 51: defaultValue = .float(try field.float())
            case 61: defaultValue = .double(try field.double())
            default: break
            }
        }
        guard let dataType else { throw .missing(field: "dataType", message: "ArrayFeatureType") }
        self.init(
            shape: try sizes(dimensions), dataType: dataType, flexibility: flexibility, defaultValue: defaultValue)
    }
}

private func sizes(_ dimensions: [Int64]) throws(FormatError) -> [Int] {
    var result: [Int] = []
    for dimension in dimensions {
        guard let size = Int(exactly: dimension), size >= 0 else {
            throw .unknownValue(dimension, of: "dimension")
        }
        result.append(size)
    }
    return result
}

private func enumeratedShapes(_ reader: consuming WireReader) throws(FormatError) -> [[Int]] {
    var shapes: [[Int]] = []
    while let field = try reader.next(1) {
        var entry = try field.reader("Shape")
        var dimensions: [Int64] = []
        while let part = try entry.next(1) { try part.append(to: &dimensions) }
        shapes.append(try sizes(dimensions))
    }
    return shapes
}

private func sizeRanges(_ reader: consuming WireReader) throws(FormatError) -> [SizeRange] {
    var ranges: [SizeRange] = []
    while let field = try reader.next(1) {
        ranges.append(try SizeRange(decoding: field.reader("SizeRange")))
    }
    return ranges
}

extension SizeRange {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init(lower: 0, upper: 0)
        while let field = try reader.next() {
            switch field.number {
            case 1: lower = try field.size()
            case 2:
                let bound = try field.int64()
                upper = bound < 0 ? nil : Int(exactly: bound)
            default: break
            }
        }
    }
}

extension ImageFeature {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init(width: 0, height: 0, colorSpace: .unspecified)
        while let field = try reader.next() {
            switch field.number {
            case 1: width = try field.size()
            case 2: height = try field.size()
            case 3: colorSpace = try field.enumeration(ColorSpace.self)
            case 21: flexibility = .enumerated(try imageSizes(field.reader("EnumeratedImageSizes")))
            case 31: flexibility = try imageRanges(field.reader("ImageSizeRange"))
            default: break
            }
        }
    }
}

private func imageSizes(_ reader: consuming WireReader) throws(FormatError) -> [ImageFeature.Size] {
    var sizes: [ImageFeature.Size] = []
    while let field = try reader.next(1) {
        var entry = try field.reader("ImageSize")
        var size = ImageFeature.Size(width: 0, height: 0)
        while let part = try entry.next() {
            switch part.number {
            case 1: size.width = try part.size()
            case 2: size.height = try part.size()
            default: break
            }
        }
        sizes.append(size)
    }
    return sizes
}

private func imageRanges(_ reader: consuming WireReader) throws(FormatError) -> ImageFeature.Flexibility {
    var width = SizeRange(lower: 0, upper: 0)
    var height = width
    while let field = try reader.next() {
        switch field.number {
        case 1: width = try SizeRange(decoding: field.reader("SizeRange"))
        case 2: height = try SizeRange(decoding: field.reader("SizeRange"))
        default: break
        }
    }
    return .ranges(width: width, height: height)
}
