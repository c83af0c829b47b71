// What Core ML demands of an updatable network, and the part of it that an update works on.
import MILFormat

/// The path from an input to the loss, with everything that an update reads of the model.
struct UpdatableNetwork {
    let graph: NetworkGraph
    /// The layers that make the loss's input, in order. Before cross entropy, without the softmax.
    let path: [NetworkNode]
    let loss: NetworkUpdates.Loss
    let updates: NetworkUpdates
    let optimizer: NetworkUpdates.Optimizer
    /// The input at the path's start.
    let input: String
    /// Where in the path gradients are needed from.
    let firstUpdatable: Int
    /// The feature that training data hold the target in.
    let target: String
    let classLabels: NeuralNetwork.ClassLabels?

    /// Throws the first rule that the model breaks.
    init(_ model: Model) throws {
        guard model.isUpdatable else { throw Self.wrong("the model is not updatable") }
        guard case .network(let network) = model.content else {
            throw Self.wrong("only neural networks can be updated")
        }
        guard model.specificationVersion >= 4 else {
            throw Self.wrong("its specification version is \(model.specificationVersion); updates need 4")
        }
        guard let updates = network.updates, let optimizer = updates.optimizer else {
            throw Self.wrong("it has no update parameters or no optimizer")
        }
        self.updates = updates
        self.optimizer = optimizer
        let description = try model.functionDescription()
        graph = try NetworkGraph(network, description)
        classLabels = network.classLabels
        loss = try Self.onlyLoss(updates, network)
        try Self.checkParameters(updates, optimizer)
        (path, input) = try Self.path(to: loss, graph)
        let updatable = network.layers.filter(\.isUpdatable)
        try Self.checkUpdatable(updatable, on: path)
        firstUpdatable = path.firstIndex { $0.layer.isUpdatable } ?? 0
        try Self.checkGradients(path[(firstUpdatable + 1)...])
        target = try Self.target(model.description.trainingInputs, loss, description)
    }

    private static func wrong(_ text: String) -> MLModelError {
        MLModelError(.generic, "the model cannot be updated: \(text)")
    }

    private static func onlyLoss(_ updates: NetworkUpdates, _ network: NeuralNetwork) throws -> NetworkUpdates.Loss {
        guard updates.losses.count == 1, let loss = updates.losses.first, loss.kind != nil else {
            throw wrong("it has \(updates.losses.count) loss layers; exactly one of a known kind is needed")
        }
        let names = network.layers.map(\.name) + [loss.name]
        guard Set(names).count == names.count else { throw wrong("two of its layers have one name") }
        guard !network.layers.contains(where: { $0.outputs.contains(loss.target) }) else {
            throw wrong("the loss's target '\(loss.target)' is made by a layer")
        }
        return loss
    }

    private static func checkParameters(_ updates: NetworkUpdates, _ optimizer: NetworkUpdates.Optimizer) throws {
        let (reals, size): ([NetworkUpdates.RealParameter?], NetworkUpdates.IntegerParameter?)
        switch optimizer {
        case .sgd(let rate, let batch, let momentum): (reals, size) = ([rate] + (momentum.map { [$0] } ?? []), batch)
        case .adam(let rate, let batch, let beta1, let beta2, let eps):
            (reals, size) = ([rate, beta1, beta2, eps], batch)
        }
        for parameter in reals {
            guard let parameter else { throw wrong("a parameter of its optimizer is missing") }
            guard parameter.allows(parameter.defaultValue) else {
                throw wrong("the value \(parameter.defaultValue) of its optimizer is out of its range")
            }
        }
        for (name, parameter) in [("mini-batch size", size), ("number of epochs", updates.epochs)] {
            guard let parameter, parameter.defaultValue > 0, parameter.allows(parameter.defaultValue) else {
                throw wrong("its \(name) is missing, not positive, or not among the allowed values")
            }
        }
    }

    /// Backwards from the loss; a value has one maker, so there is one way.
    private static func path(
        to loss: NetworkUpdates.Loss, _ graph: NetworkGraph
    ) throws -> ([NetworkNode], input: String) {
        guard var value = graph.values[loss.input] else {
            throw wrong("no layer makes the loss's input '\(loss.input)'")
        }
        var path: [NetworkNode] = []
        while let node = graph.nodes.first(where: { $0.output == value }) {
            path.insert(node, at: 0)
            value = node.input
        }
        guard let input = graph.inputs.first(where: { $0.value == value })?.name, let last = path.last else {
            throw wrong("the loss reads no layer")
        }
        if loss.kind == .categoricalCrossEntropy {
            guard case .softmax(let axis) = last.operation else {
                throw wrong("cross entropy must read a softmax, not '\(last.layer.name)'")
            }
            let shape = graph.shapes[last.output]
            guard shape[axis] == shape.reduce(1, *) else { throw wrong("its softmax is not over all values") }
            path.removeLast()
        } else if last.isLinear(before: path.dropLast()) {
            throw wrong("mean squared error cannot read the linear output of '\(last.layer.name)'; add an activation")
        }
        return (path, input)
    }

    private static func checkUpdatable(_ layers: [NetworkLayer], on path: [NetworkNode]) throws {
        guard !layers.isEmpty else { throw wrong("no layer is updatable") }
        for layer in layers {
            let weights: [NetworkWeights?]
            switch layer.kind {
            case .innerProduct(let product): weights = [product.weights, product.bias]
            case .convolution(let convolution): weights = [convolution.weights, convolution.bias]
            default: throw wrong("the layer '\(layer.name)' has no weights that can be updated")
            }
            for weights in weights.compactMap(\.self) {
                guard weights.isUpdatable, case .floats = weights.values else {
                    throw wrong("the weights and the bias of '\(layer.name)' must be updatable floats")
                }
            }
            guard path.contains(where: { $0.layer.name == layer.name }) else {
                throw wrong("the loss does not depend on the updatable layer '\(layer.name)'")
            }
        }
    }

    private static func checkGradients(_ nodes: ArraySlice<NetworkNode>) throws {
        for node in nodes {
            switch node.layer.kind {
            case .innerProduct, .convolution, .flatten, .activation(.relu), .activation(.sigmoid), .activation(.tanh):
                continue
            case .pooling(let pooling) where pooling.kind != .l2: continue
            default: throw wrong("no gradient passes the layer '\(node.layer.name)'")
            }
        }
    }

    private static func target(
        _ trainingInputs: [FeatureDescription], _ loss: NetworkUpdates.Loss, _ description: FunctionDescription
    ) throws -> String {
        let names = trainingInputs.map(\.name)
        guard !Set(names).isDisjoint(with: description.inputs.map(\.name)) else {
            throw wrong("its training inputs hold none of the model's inputs")
        }
        if names.contains(loss.target) { return loss.target }
        guard !description.predictedFeatureName.isEmpty, names.contains(description.predictedFeatureName) else {
            throw wrong("its training inputs do not hold the target '\(loss.target)'")
        }
        return description.predictedFeatureName
    }
}

extension NetworkNode {
    /// Whether nothing but a product and changes of shape came last.
    fileprivate func isLinear(before: ArraySlice<NetworkNode>) -> Bool {
        switch layer.kind {
        case .innerProduct, .convolution, .activation(.linear): return true
        case .flatten, .reshape: return before.last.map { $0.isLinear(before: before.dropLast()) } ?? true
        case .pooling, .activation, .softmax, .other: return false
        }
    }
}

extension NetworkUpdates.RealParameter {
    func allows(_ value: Double) -> Bool {
        value.isFinite && value >= minimum ?? -.infinity && value <= maximum ?? .infinity
    }
}

extension NetworkUpdates.IntegerParameter {
    func allows(_ value: Int64) -> Bool {
        value >= minimum ?? .min && value <= maximum ?? .max && allowed?.contains(value) ?? true
    }
}
