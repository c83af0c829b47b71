// A NeuralNetwork package with other weights: the same bytes but for the weights of the layers that are named.

import Foundation

/// New values of a layer's weights; what is nil stays as it is.
public struct LayerWeights: Sendable, Hashable {
    public var weights: [Float]?
    public var bias: [Float]?

    public init(weights: [Float]? = nil, bias: [Float]? = nil) {
        self.weights = weights
        self.bias = bias
    }
}

extension Package {
    /// The values must be as many as the layers have now; layers that are not there are not missed.
    public func replacing(_ weights: [String: LayerWeights]) throws(FormatError) -> Package {
        let networks = [ModelKind.neuralNetwork, .neuralNetworkClassifier, .neuralNetworkRegressor].map(\.rawValue)
        let bytes = try modelBytes.withBuffer { (file) throws(FormatError) in
            try rewrite(WireReader(file, message: "Model")) { (field) throws(FormatError) in
                guard networks.contains(field.number) else { return nil }
                return try rewrite(field.reader("NeuralNetwork")) { (field) throws(FormatError) in
                    guard field.number == 1 else { return nil }
                    return try layer(field, weights)
                }
            }
        }
        return try Package(model: Data(bytes), weightFiles: [:])
    }
}

/// The layer's message with its new weights; nil when it keeps its own.
private func layer(_ field: WireField, _ weights: [String: LayerWeights]) throws(FormatError) -> [UInt8]? {
    var name = ""
    var parts = try field.reader("NeuralNetworkLayer")
    while let part = try parts.next(1) { name = try part.string() }
    guard let new = weights[name] else { return nil }
    return try rewrite(field.reader("NeuralNetworkLayer")) { (field) throws(FormatError) in
        let places = [100: (90, 91), 140: (20, 21)]
        guard let (weightField, biasField) = places[field.number] else { return nil }
        return try rewrite(field.reader("layer")) { (field) throws(FormatError) in
            let values = field.number == weightField ? new.weights : field.number == biasField ? new.bias : nil
            guard let values else { return nil }
            return try replaced(field.reader("WeightParams"), values)
        }
    }
}

private func replaced(_ reader: consuming WireReader, _ values: [Float]) throws(FormatError) -> [UInt8] {
    var writer = WireWriter()
    writer.append(1, floats: values)
    while let (field, raw) = try reader.nextWithBytes() {
        if ![1, 2, 30, 31, 40].contains(field.number) { writer.append(raw: raw) }
    }
    return writer.bytes
}

/// Copies a message; a submessage that `replacement` answers for is written anew.
private func rewrite(
    _ reader: consuming WireReader, _ replacement: (WireField) throws(FormatError) -> [UInt8]?
) throws(FormatError) -> [UInt8] {
    var writer = WireWriter()
    while let (field, raw) = try reader.nextWithBytes() {
        if case .bytes = field.content, let bytes = try replacement(field) {
            writer.append(field.number, message: bytes)
        } else {
            writer.append(raw: raw)
        }
    }
    return writer.bytes
}
