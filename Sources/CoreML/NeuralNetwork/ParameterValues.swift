// Single parameters of a network by their keys.
import Foundation
import MILFormat

extension Model {
    /// Nil for what the model does not have.
    func parameterValue(_ key: MLParameterKey, _ configuration: MLModelConfiguration) throws -> Any? {
        guard case .network(let network) = content else { return nil }
        if let scope = key.scope { return try network.weights(of: scope, key) }
        guard let updates = network.updates, isUpdatable else { return nil }
        var parameters = Hyperparameters(updates)
        try parameters.set(configuration.parameters ?? [:])
        return parameters.values[key]
    }
}

extension NeuralNetwork {
    fileprivate func weights(of name: String, _ key: MLParameterKey) throws -> MLMultiArray? {
        guard let layer = layers.first(where: { $0.name == name }) else { return nil }
        let (weights, bias, shape, channels): (NetworkWeights, NetworkWeights?, [Int], Int)
        switch layer.kind {
        case .innerProduct(let product):
            (weights, bias) = (product.weights, product.bias)
            (shape, channels) = ([product.outputChannels, product.inputChannels], product.outputChannels)
        case .convolution(let convolution):
            (weights, bias) = (convolution.weights, convolution.bias)
            channels = convolution.outputChannels
            shape = [channels, convolution.kernelChannels] + convolution.kernel
        default: return nil
        }
        switch key.name {
        case MLParameterKey.weights.name: return try weights.array(shape)
        case MLParameterKey.biases.name: return try bias?.array([channels])
        default: return nil
        }
    }
}

extension NetworkWeights {
    fileprivate func array(_ shape: [Int]) throws -> MLMultiArray? {
        guard case .floats(let values) = values, let layout = ArrayLayout(cOrder: shape), layout.count == values.count
        else { return nil }
        let array = MLMultiArray(layout: layout, dataType: .float32)
        for (index, value) in values.enumerated() { array.view.store(Double(value), index) }
        return array
    }
}
