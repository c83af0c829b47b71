// What a function takes and gives, as JSON for clients that do not link Swift: the only description of that text.

import Foundation
import MILFormat

/// The text is an object: `function`, `opset`, `specification`; `inputs`, `outputs`, `states`, each a list of features;
/// `predicted` and `probabilities` (names, or ""), `classes` (strings or numbers). A feature has `name`, `kind` ("array",
/// "image", "dictionary", "string", "int64", "double", "sequence", "state"), `dtype` (as MIL spells it), `shape` (the
/// default one; -1 for a size that is not known), `allowed` (null, `{"shapes": [...]}` or `{"ranges": [[low, high|-1]]}`),
/// `optional`, `default` (text, or null) and `color` ("", or "gray", "rgb", "bgr", "gray_f16").
struct InterfaceText {
    private let model: MILFormat.Model
    private let function: Function
    private let described: FunctionDescription

    init(_ model: MILFormat.Model, _ function: Function, _ described: FunctionDescription) {
        self.model = model
        self.function = function
        self.described = described
    }

    /// `shapes` are those of outputs for the default inputs, where they are known.
    func json(shapes: [String: [Int]]) throws -> String {
        let object: [String: Any] = [
            "function": described.name, "opset": function.opset, "specification": Int(model.specificationVersion),
            "inputs": function.inputs.filter { !$0.isState }.map { feature($0, in: described.inputs) },
            "states": function.inputs.filter(\.isState).map { feature($0, in: described.states) },
            "outputs": (function.body?.outputs ?? []).map { name in
                var output = feature(output(name), in: described.outputs)
                if let shape = shapes[name] { output["shape"] = shape }
                return output
            },
            "predicted": described.predictedFeatureName, "probabilities": described.predictedProbabilitiesName,
            "classes": classes, "classify": classifierOutputs,
        ]
        let data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
        return String(decoding: data, as: UTF8.self)
    }

    /// Of each input of the program: what the description gives as default, else what its type says.
    var defaultShapes: [String: [Int]] {
        var shapes: [String: [Int]] = [:]
        for input in function.inputs where !input.isState {
            let sizes = self.shape(input, described.inputs.first { $0.name == input.name })
            if !sizes.contains(-1) { shapes[input.name] = sizes }
        }
        return shapes
    }

    // MARK: Features

    private func feature(_ value: NamedType, in features: [FeatureDescription]) -> [String: Any] {
        let described = features.first { $0.name == value.name }
        var result: [String: Any] = [
            "name": value.name, "kind": "array", "dtype": value.dataType.map { "\($0)" } ?? "",
            "shape": shape(value, described), "allowed": NSNull(), "optional": described?.isOptional ?? false,
            "default": NSNull(), "color": "",
        ]
        switch described?.type {
        case .multiArray(let array):
            result["allowed"] = allowed(array.flexibility)
            if let fill = array.defaultValue { result["default"] = fill.text }
        case .image(let image):
            result["kind"] = "image"
            result["color"] = image.colorSpace.text
            result["allowed"] = allowed(image, shape(value, described))
        case .dictionary: result["kind"] = "dictionary"
        case .int64: result["kind"] = "int64"
        case .double: result["kind"] = "double"
        case .string: result["kind"] = "string"
        case .sequence: result["kind"] = "sequence"
        case .state: result["kind"] = "state"
        case nil: break
        }
        return result
    }

    private func shape(_ value: NamedType, _ described: FeatureDescription?) -> [Int] {
        let dimensions = value.tensor?.dimensions ?? []
        var sizes = dimensions.map { if case .fixed(let size) = $0 { size } else { -1 } }
        guard sizes.contains(-1) else { return sizes }
        switch described?.type {
        case .multiArray(let array) where array.shape.count == sizes.count: sizes = array.shape
        case .image(let image) where sizes.count == 4:
            if sizes[2] == -1 { sizes[2] = image.height }
            if sizes[3] == -1 { sizes[3] = image.width }
        default: break
        }
        return sizes
    }

    private func allowed(_ flexibility: ArrayFeature.Flexibility) -> Any {
        switch flexibility {
        case .fixed: NSNull()
        case .enumerated(let shapes): ["shapes": shapes]
        case .ranges(let ranges): ["ranges": ranges.map { [$0.lower, $0.upper ?? -1] }]
        }
    }

    /// As tensors, [1, channels, height, width]. The default size is always one of those enumerated.
    private func allowed(_ image: ImageFeature, _ shape: [Int]) -> Any {
        guard shape.count == 4 else { return NSNull() }
        switch image.flexibility {
        case .fixed: return NSNull()
        case .enumerated(let sizes):
            let others = sizes.map { [shape[0], shape[1], $0.height, $0.width] }.filter { $0 != shape }
            return ["shapes": [shape] + others]
        case .ranges(let width, let height):
            let fixed = shape[..<2].map { [$0, $0] }
            return ["ranges": fixed + [height, width].map { [$0.lower, $0.upper ?? -1] }]
        }
    }

    private func output(_ name: String) -> NamedType {
        for operation in function.body?.operations ?? [] {
            for output in operation.outputs where output.name == name { return output }
        }
        return function.inputs.first { $0.name == name } ?? NamedType(name: name, type: .tuple([]))
    }

    // MARK: Classes

    private var classifier: MILFormat.Operation? { function.body?.operations.first { $0.type == "classify" } }

    private var classifierOutputs: [String] { classifier?.outputs.map(\.name) ?? [] }

    private var classes: [Any] {
        switch classifier?.inputs["classes"]?.first {
        case .value(let value): value.labels
        case .name(let name):
            function.body?.operations.first { $0.outputs.first?.name == name }?.attributes["val"]?.labels ?? []
        case nil: []
        }
    }
}

extension NamedType {
    fileprivate var isState: Bool {
        if case .state = type { true } else { false }
    }

    fileprivate var tensor: TensorType? {
        switch type {
        case .tensor(let tensor), .state(let tensor): tensor
        case .list, .tuple, .dictionary: nil
        }
    }

    fileprivate var dataType: DataType? { tensor?.dataType }
}

extension Value {
    /// Class labels: a list or a tensor of strings or integers.
    fileprivate var labels: [Any] {
        switch payload {
        case .strings(let values): values
        case .longInts(let values): values.map { NSNumber(value: $0) }
        case .ints(let values): values.map { NSNumber(value: $0) }
        case .list(let values): values.flatMap(\.labels)
        default: []
        }
    }
}

extension ArrayFeature.Fill {
    /// NaN and infinities have no place in JSON numbers.
    fileprivate var text: String {
        switch self {
        case .int(let value): "\(value)"
        case .float(let value): "\(value)"
        case .double(let value): "\(value)"
        }
    }
}

extension ImageFeature.ColorSpace {
    fileprivate var text: String {
        switch self {
        case .unspecified: ""
        case .grayscale: "gray"
        case .rgb: "rgb"
        case .bgr: "bgr"
        case .grayscaleFloat16: "gray_f16"
        }
    }
}
