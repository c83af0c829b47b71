// A NeuralNetwork as a function of an ML Program, which is what our runtime runs.
import MILFormat

extension LoweredFunction {
    /// One batch is one sample, as Core ML's predictions are.
    init(_ network: NeuralNetwork, _ description: FunctionDescription) throws {
        let graph = try NetworkGraph(network, description)
        var writer = NetworkProgramWriter(graph)
        for node in graph.nodes { try writer.add(node) }
        var outputs: [String] = []
        let classifier = try Self.classifier(network, description, graph)
        for feature in description.outputs {
            if feature.name == classifier?.labelOutput || feature.name == classifier?.dictionaryOutput { continue }
            guard let value = graph.values[feature.name] else {
                throw MLModelError(.generic, "no layer makes the output '\(feature.name)'")
            }
            writer.addOutput(feature, value)
            outputs.append(feature.name)
        }
        if let classifier { outputs.append(classifier.probabilities) }
        self.init(
            function: writer.function(outputs: outputs, inputs: graph.inputs.map { ($0.name, $0.declared) }),
            classifier: classifier)
    }

    private static func classifier(
        _ network: NeuralNetwork, _ description: FunctionDescription, _ graph: NetworkGraph
    ) throws -> Classifier? {
        guard let labels = network.classLabels else { return nil }
        let name = network.probabilitiesName.isEmpty ? network.layers.last?.outputs.first : network.probabilitiesName
        guard let name, let value = graph.values[name] else {
            throw MLModelError(.generic, "no layer makes the probabilities of the classes")
        }
        let list: [Label] =
            switch labels {
            case .strings(let names): names.map { .string($0) }
            case .integers(let numbers): numbers.map { .int64($0) }
            }
        let count = graph.shapes[value].reduce(1, *)
        guard count == list.count else {
            throw MLModelError(.generic, "there are \(list.count) class labels and \(count) probabilities")
        }
        return Classifier(
            probabilities: NetworkProgramWriter.name(value), labels: list,
            labelOutput: description.predictedFeatureName,
            dictionaryOutput: description.predictedProbabilitiesName)
    }
}

/// Writes one operation after the other.
private struct NetworkProgramWriter {
    private let graph: NetworkGraph
    private var operations: [MILFormat.Operation] = []
    private var temporaries = 0

    init(_ graph: NetworkGraph) {
        self.graph = graph
        for input in graph.inputs {
            reshape(input.name, to: graph.shapes[input.value], as: Self.name(input.value))
        }
    }

    /// No feature's name: those are identifiers.
    static func name(_ value: Int) -> String { "value \(value)" }

    func function(outputs: [String], inputs: [(name: String, shape: [Int])]) -> Function {
        let types = inputs.map { NamedType(name: $0.name, type: .tensor(TensorType(.float32, shape: $0.shape))) }
        return Function(
            inputs: types, opset: "CoreML7",
            specializations: ["CoreML7": Block(outputs: outputs, operations: operations)])
    }

    mutating func add(_ node: NetworkNode) throws {
        let (x, result) = (Self.name(node.input), Self.name(node.output))
        let (from, to) = (graph.shapes[node.input], graph.shapes[node.output])
        switch node.operation {
        case .product(let lead, let input, let output, let weights, let bias):
            let rows = temporary()
            reshape(x, to: [lead, input], as: rows)
            let product = temporary()
            var arguments: [String: Binding] = [
                "x": .name(rows), "weight": .floats(weights, [output, input]),
            ]
            arguments["bias"] = bias.map { .floats($0, [output]) }
            add("linear", arguments, product, [lead, output])
            reshape(product, to: to, as: result)
        case .convolution(let windows, let groups, let weights, let bias):
            var arguments = windows.arguments
            let shape = [windows.output[0], windows.input[0] / groups] + windows.kernel
            arguments["weight"] = .floats(weights, shape)
            arguments["bias"] = bias.map { .floats($0, [windows.output[0]]) }
            arguments["dilations"] = .ints(windows.dilations)
            arguments["groups"] = .int(groups)
            addWindows("conv", windows, arguments, x, result, to)
        case .pooling(let windows, let pooling):
            var arguments = windows.arguments
            arguments["kernel_sizes"] = .ints(windows.kernel)
            if pooling.kind == .average {
                arguments["exclude_padding_from_average"] = .bool(pooling.excludesPadding)
            }
            let type = [.maximum: "max_pool", .average: "avg_pool", .l2: "l2_pool"][pooling.kind] ?? ""
            addWindows(type, windows, arguments, x, result, to)
        case .activation(let activation):
            try add(activation, node.layer, x, result, to)
        case .softmax(let axis):
            add("softmax", ["x": .name(x), "axis": .int(axis)], result, to)
        case .reshape:
            reshape(x, to: to, as: result)
        case .flattenChannelsLast:
            let moved = temporary()
            let lead = Array(0..<from.count - 3)
            let order = lead + [from.count - 2, from.count - 1, from.count - 3]
            add("transpose", ["x": .name(x), "perm": .ints(order)], moved, order.map { from[$0] })
            reshape(moved, to: to, as: result)
        }
    }

    /// With the shape that the description says, or without the axes that only the mapping to rank five made.
    mutating func addOutput(_ feature: FeatureDescription, _ value: Int) {
        let own = graph.shapes[value]
        var shape = own.count == 5 ? Array(own.dropFirst(2)) : own
        while own.count == 5, shape.count > 1, shape.last == 1 { shape.removeLast() }
        if case .multiArray(let array) = feature.type, !array.shape.isEmpty,
            ArrayLayout(cOrder: array.shape)?.count == own.reduce(1, *)
        {
            shape = array.shape
        }
        reshape(Self.name(value), to: shape, as: feature.name)
    }

    private mutating func addWindows(
        _ type: String, _ windows: NetworkWindows, _ arguments: [String: Binding], _ x: String, _ result: String,
        _ shape: [Int]
    ) {
        let planes = temporary()
        reshape(x, to: [windows.lead] + windows.input, as: planes)
        let made = temporary()
        add(type, arguments.merging(["x": .name(planes)]) { a, _ in a }, made, [windows.lead] + windows.output)
        reshape(made, to: shape, as: result)
    }

    private mutating func add(
        _ activation: NetworkLayer.Activation, _ layer: NetworkLayer, _ x: String, _ result: String, _ shape: [Int]
    ) throws {
        func simple(_ type: String, _ alpha: Float? = nil, _ beta: Float? = nil) -> (String, [String: Binding]) {
            var arguments: [String: Binding] = ["x": .name(x)]
            arguments["alpha"] = alpha.map { .floats([$0], []) }
            arguments["beta"] = beta.map { .floats([$0], []) }
            return (type, arguments)
        }
        let (type, arguments) =
            switch activation {
            case .linear(let alpha, let beta): simple("linear_activation", alpha, beta)
            case .relu: simple("relu")
            case .leakyReLU(let alpha): simple("leaky_relu", alpha)
            case .thresholdedReLU(let alpha): simple("thresholded_relu", alpha)
            case .tanh: simple("tanh")
            case .scaledTanh(let alpha, let beta): simple("scaled_tanh", alpha, beta)
            case .sigmoid: simple("sigmoid")
            case .hardSigmoid(let alpha, let beta): simple("sigmoid_hard", alpha, beta)
            case .elu(let alpha): simple("elu", alpha)
            case .softsign: simple("softsign")
            case .softplus: simple("softplus")
            case .prelu, .parametricSoftplus: throw layer.unsupported("an activation with weights")
            }
        add(type, arguments, result, shape)
    }

    private mutating func reshape(_ x: String, to shape: [Int], as result: String) {
        add("reshape", ["x": .name(x), "shape": .ints(shape)], result, shape)
    }

    private mutating func add(_ type: String, _ inputs: [String: Binding], _ output: String, _ shape: [Int]) {
        let result = NamedType(name: output, type: .tensor(TensorType(.float32, shape: shape)))
        operations.append(
            MILFormat.Operation(type: type, inputs: inputs.mapValues { [$0] }, outputs: [result]))
    }

    private mutating func temporary() -> String {
        temporaries += 1
        return "temporary \(temporaries)"
    }
}

extension NetworkWindows {
    fileprivate var arguments: [String: Binding] {
        ["strides": .ints(strides), "pad_type": .string("custom"), "pad": .ints([top, bottom, left, right])]
    }
}

extension Binding {
    fileprivate static func floats(_ values: [Float], _ shape: [Int]) -> Binding {
        .value(Value(type: .tensor(TensorType(.float32, shape: shape)), payload: .floats(values)))
    }

    fileprivate static func ints(_ values: [Int]) -> Binding {
        let numbers = values.map { Int32(clamping: $0) }
        return .value(Value(type: .tensor(TensorType(.int32, shape: [values.count])), payload: .ints(numbers)))
    }

    fileprivate static func int(_ value: Int) -> Binding {
        .value(Value(type: .tensor(TensorType(.int32, shape: [])), payload: .ints([Int32(clamping: value)])))
    }

    fileprivate static func bool(_ value: Bool) -> Binding {
        .value(Value(type: .tensor(TensorType(.bool, shape: [])), payload: .bools([value])))
    }

    fileprivate static func string(_ value: String) -> Binding {
        .value(Value(type: .tensor(TensorType(.string, shape: [])), payload: .strings([value])))
    }
}
