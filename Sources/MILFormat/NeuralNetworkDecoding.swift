// NeuralNetwork.proto into the values of NeuralNetwork.swift. What we do not run is recognised and left alone.

extension NeuralNetwork {
    /// A network, a classifier or a regressor: they share the numbers of what they have in common.
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: layers.append(try NetworkLayer(decoding: field.reader("NeuralNetworkLayer")))
            case 2: hasPreprocessing = true
            case 5: mapsToRankFive = try field.uint64() == 0
            case 10: updates = try NetworkUpdates(decoding: field.reader("NetworkUpdateParameters"))
            case 100:
                var labels: [String] = []
                var vector = try field.reader("StringVector")
                while let label = try vector.next(1) { labels.append(try label.string()) }
                classLabels = .strings(labels)
            case 101:
                var labels: [Int64] = []
                var vector = try field.reader("Int64Vector")
                while let label = try vector.next(1) { try label.append(to: &labels) }
                classLabels = .integers(labels)
            case 200: probabilitiesName = try field.string()
            default: break
            }
        }
    }
}

extension NetworkLayer {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: name = try field.string()
            case 2: inputs.append(try field.string())
            case 3: outputs.append(try field.string())
            case 10: isUpdatable = try field.bool()
            case 100: kind = .convolution(try Convolution(decoding: field.reader("ConvolutionLayerParams")))
            case 120: kind = .pooling(try Pooling(decoding: field.reader("PoolingLayerParams")))
            case 130: kind = .activation(try Activation(decoding: field.reader("ActivationParams")))
            case 140: kind = .innerProduct(try InnerProduct(decoding: field.reader("InnerProductLayerParams")))
            case 175: kind = .softmax
            case 300: kind = try reshape(field.reader("ReshapeLayerParams"))
            case 301: kind = .flatten(channelsLast: try isChannelsLast(field.reader("FlattenLayerParams")))
            case 4, 5: break
            case let number: kind = .other(number)
            }
        }
    }
}

private func isChannelsLast(_ reader: consuming WireReader) throws(FormatError) -> Bool {
    var result = false
    while let field = try reader.next(1) { result = try field.uint64() != 0 }
    return result
}

private func reshape(_ reader: consuming WireReader) throws(FormatError) -> NetworkLayer.Kind {
    var target: [Int64] = []
    var isLast = false
    while let field = try reader.next() {
        if field.number == 1 { try field.append(to: &target) }
        if field.number == 2 { isLast = try field.uint64() != 0 }
    }
    return .reshape(try positive(target, "targetShape"), channelsLast: isLast)
}

/// Sizes as Swift counts, none negative.
private func positive(_ values: [Int64], _ name: String) throws(FormatError) -> [Int] {
    for value in values where !(0..<1 << 31).contains(value) { throw .unknownValue(value, of: name) }
    return values.map(Int.init)
}

extension WireField {
    fileprivate func appendPair(to pair: inout [Int64]?) throws(FormatError) {
        var values = pair ?? []
        try append(to: &values)
        pair = values
    }
}

/// Two numbers for rows and columns; one is meant for both, none is the format's default.
private func pair(_ values: [Int64]?, _ standard: Int, _ name: String) throws(FormatError) -> [Int] {
    let values = try positive(values ?? [], name)
    switch values.count {
    case 0: return [standard, standard]
    case 1: return [values[0], values[0]]
    case 2: return values
    default: throw .unknownValue(Int64(values.count), of: "number of \(name)")
    }
}

extension NetworkLayer.Convolution {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        var (sizes, steps, gaps): ([Int64]?, [Int64]?, [Int64]?)
        var hasBias = false
        while let field = try reader.next() {
            switch field.number {
            case 1: outputChannels = try field.size()
            case 2: kernelChannels = try field.size()
            case 10: groups = max(try field.size(), 1)
            case 20: try field.appendPair(to: &sizes)
            case 30: try field.appendPair(to: &steps)
            case 40: try field.appendPair(to: &gaps)
            case 50: padding = try .valid(decoding: field.reader("ValidPadding"))
            case 51: padding = .same(topLeftHeavy: try isChannelsLast(field.reader("SamePadding")))
            case 60: isTransposed = try field.bool()
            case 70: hasBias = try field.bool()
            case 90: weights = try NetworkWeights(decoding: field.reader("WeightParams"))
            case 91: bias = try NetworkWeights(decoding: field.reader("WeightParams"))
            default: break
            }
        }
        kernel = try pair(sizes, 3, "kernelSize")
        strides = try pair(steps, 1, "stride")
        dilations = try pair(gaps, 1, "dilationFactor")
        if !hasBias { bias = nil }
    }
}

extension NetworkLayer.Padding {
    fileprivate static func valid(decoding reader: consuming WireReader) throws(FormatError) -> NetworkLayer.Padding {
        var edges: [Int] = []
        while let field = try reader.next(1) {
            var amounts = try field.reader("BorderAmounts")
            while let amount = try amounts.next(10) {
                var sizes = try amount.reader("EdgeSizes")
                var (start, end): (Int64, Int64) = (0, 0)
                while let size = try sizes.next() {
                    if size.number == 1 { start = try size.int64() }
                    if size.number == 2 { end = try size.int64() }
                }
                edges += try positive([start, end], "padding")
            }
        }
        guard edges.isEmpty || edges.count == 4 else { throw .unknownValue(Int64(edges.count / 2), of: "borders") }
        if edges.isEmpty { edges = [0, 0, 0, 0] }
        return .valid(top: edges[0], bottom: edges[1], left: edges[2], right: edges[3])
    }
}

extension NetworkLayer.InnerProduct {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        var hasBias = false
        while let field = try reader.next() {
            switch field.number {
            case 1: inputChannels = try field.size()
            case 2: outputChannels = try field.size()
            case 10: hasBias = try field.bool()
            case 20: weights = try NetworkWeights(decoding: field.reader("WeightParams"))
            case 21: bias = try NetworkWeights(decoding: field.reader("WeightParams"))
            default: break
            }
        }
        if !hasBias { bias = nil }
    }
}

extension NetworkLayer.Pooling {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        var (sizes, steps): ([Int64]?, [Int64]?)
        while let field = try reader.next() {
            switch field.number {
            case 1: kind = try field.enumeration(Kind.self)
            case 10: try field.appendPair(to: &sizes)
            case 20: try field.appendPair(to: &steps)
            case 30: padding = try .valid(decoding: field.reader("ValidPadding"))
            case 31: padding = .same(topLeftHeavy: try isChannelsLast(field.reader("SamePadding")))
            case 32: padding = .includeLastPixel
            case 50: excludesPadding = try field.bool()
            case 60: isGlobal = try field.bool()
            default: break
            }
        }
        kernel = try pair(sizes, 3, "kernelSize")
        strides = try pair(steps, 1, "stride")
    }
}

extension NetworkLayer.Activation {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        var result: Self?
        while let field = try reader.next() {
            var (alpha, beta): (Float, Float) = (0, 0)
            var (alphas, betas): ([Float], [Float]) = ([], [])
            var parts = try field.reader("Activation")
            while let part = try parts.next() {
                if field.number == 25 || field.number == 71 {
                    let weights = try NetworkWeights(decoding: part.reader("WeightParams"))
                    if case .floats(let values) = weights.values {
                        if part.number == 1 { alphas = values } else { betas = values }
                    }
                } else if part.number == 1 {
                    alpha = try part.float()
                } else if part.number == 2 {
                    beta = try part.float()
                }
            }
            switch field.number {
            case 5: result = .linear(alpha: alpha, beta: beta)
            case 10: result = .relu
            case 15: result = .leakyReLU(alpha: alpha)
            case 20: result = .thresholdedReLU(alpha: alpha)
            case 25: result = .prelu(alpha: alphas)
            case 30: result = .tanh
            case 31: result = .scaledTanh(alpha: alpha, beta: beta)
            case 40: result = .sigmoid
            case 41: result = .hardSigmoid(alpha: alpha, beta: beta)
            case 50: result = .elu(alpha: alpha)
            case 60: result = .softsign
            case 70: result = .softplus
            case 71: result = .parametricSoftplus(alpha: alphas, beta: betas)
            default: break
            }
        }
        guard let result else { throw .missing(field: "kind", message: "ActivationParams") }
        self = result
    }
}

extension NetworkWeights {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        var floats: [Float] = []
        var other: Values?
        while let field = try reader.next() {
            switch field.number {
            case 1: try field.append(to: &floats)
            case 2: other = .halves(Array(try field.bytes()))
            case 30, 31, 40: other = .other
            case 50: isUpdatable = try field.bool()
            default: break
            }
        }
        values = other ?? .floats(floats)
    }
}
