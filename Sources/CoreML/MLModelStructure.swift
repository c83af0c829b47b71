// MLModelStructure: a model's program for those who want to look into it.
import Foundation
import MILFormat

@available(macOS 14.4, iOS 17.4, *)
public enum MLModelStructure: Sendable {
    case neuralNetwork(NeuralNetwork)
    case program(Program)
    case pipeline(Pipeline)
    case unsupported

    public struct NeuralNetwork: Sendable {
        public struct Layer: Sendable {
            public let name: String
            public let type: String
            public let inputNames: [String]
            public let outputNames: [String]
        }

        public let layers: [Layer]
    }

    public struct Pipeline: Sendable {
        public let subModelNames: [String]
        public let subModels: [MLModelStructure]
    }

    public struct Program: Sendable {
        /// A type; what it is is not shown.
        public struct ValueType: Sendable {}

        public struct NamedValueType: Sendable {
            public let name: String
            public let type: ValueType
        }

        /// A literal; its content is not shown.
        public struct Value: Sendable {}

        public enum Binding: Sendable {
            case name(String)
            case value(Value)
        }

        public struct Argument: Sendable { public let bindings: [Binding] }

        public struct Operation: Sendable {
            /// With the opset, as Core ML writes it: "ios17.add".
            public let operatorName: String
            public let inputs: [String: Argument]
            public let outputs: [NamedValueType]
            public let blocks: [Block]
        }

        public struct Block: Sendable {
            public let inputs: [NamedValueType]
            public let outputNames: [String]
            public let operations: [Operation]
        }

        public struct Function: Sendable {
            public let inputs: [NamedValueType]
            public let block: Block
        }

        public let functions: [String: Function]
    }

    public static func load(contentsOf url: URL) async throws -> MLModelStructure {
        MLModelStructure(try Package(compiledAt: url).model)
    }

    public static func load(asset: MLModelAsset) async throws -> MLModelStructure {
        MLModelStructure(asset.package.model)
    }
}

@available(macOS 14.4, iOS 17.4, *)
extension MLModelStructure {
    /// What we do not decode is unsupported.
    init(_ model: Model) {
        switch model.content {
        case .program(let program):
            self = .program(Program(functions: program.functions.compactMapValues(Program.Function.init)))
        case .network(let network):
            self = .neuralNetwork(NeuralNetwork(layers: network.layers.map(NeuralNetwork.Layer.init)))
        case .other: self = .unsupported
        }
    }
}

@available(macOS 14.4, iOS 17.4, *)
extension MLModelStructure.Program.NamedValueType {
    fileprivate init(_ name: String) { self.init(name: name, type: .init()) }
}

@available(macOS 14.4, iOS 17.4, *)
extension MLModelStructure.Program.Function {
    fileprivate init?(_ function: Function) {
        guard let body = function.body else { return nil }
        let prefix =
            switch function.opset {
            case "CoreML5": "ios15."
            case "CoreML6": "ios16."
            case "CoreML7": "ios17."
            default: "ios18."
            }
        self.init(
            inputs: function.inputs.map { .init($0.name) }, block: .init(body, operatorPrefix: prefix))
    }
}

@available(macOS 14.4, iOS 17.4, *)
extension MLModelStructure.Program.Block {
    fileprivate init(_ block: Block, operatorPrefix: String) {
        self.init(
            inputs: block.inputs.map { .init($0.name) }, outputNames: block.outputs,
            operations: block.operations.map { .init($0, operatorPrefix: operatorPrefix) })
    }
}

@available(macOS 14.4, iOS 17.4, *)
extension MLModelStructure.Program.Operation {
    fileprivate init(_ operation: MILFormat.Operation, operatorPrefix: String) {
        self.init(
            operatorName: operation.type == "const" ? "const" : operatorPrefix + operation.type,
            inputs: operation.inputs.mapValues { .init(bindings: $0.map(MLModelStructure.Program.Binding.init)) },
            outputs: operation.outputs.map { .init($0.name) },
            blocks: operation.blocks.map { .init($0, operatorPrefix: operatorPrefix) })
    }
}

@available(macOS 14.4, iOS 17.4, *)
extension MLModelStructure.Program.Binding {
    fileprivate init(_ binding: Binding) {
        if case .name(let name) = binding { self = .name(name) } else { self = .value(.init()) }
    }
}

@available(macOS 14.4, iOS 17.4, *)
extension MLModelStructure.NeuralNetwork.Layer {
    fileprivate init(_ layer: NetworkLayer) {
        self.init(name: layer.name, type: layer.kind.typeName, inputNames: layer.inputs, outputNames: layer.outputs)
    }
}

extension NetworkLayer.Kind {
    fileprivate var typeName: String {
        switch self {
        case .convolution: "convolution"
        case .innerProduct: "innerProduct"
        case .pooling: "pooling"
        case .activation: "activation"
        case .softmax: "softmax"
        case .flatten: "flatten"
        case .reshape: "reshape"
        case .other(let number): "layer \(number)"
        }
    }
}
