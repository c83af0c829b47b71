// A NeuralNetwork's layers in order, each with the shapes of its values for one sample. Runs nothing.
import MILFormat

/// A layer with its values resolved.
struct NetworkNode {
    let layer: NetworkLayer
    /// Indices into the graph's values.
    let input: Int
    let output: Int
    let operation: NetworkOperation
}

/// What a node does to the shapes that it has.
enum NetworkOperation {
    /// (lead, in) to (lead, out)
    case product(lead: Int, input: Int, output: Int, weights: [Float], bias: [Float]?)
    case convolution(NetworkWindows, groups: Int, weights: [Float], bias: [Float]?)
    case pooling(NetworkWindows, NetworkLayer.Pooling)
    case activation(NetworkLayer.Activation)
    /// Over the middle one of (before, classes, after).
    case softmax(axis: Int)
    case reshape
    case flattenChannelsLast
}

/// Windows over the planes of (lead, channels, rows, columns).
struct NetworkWindows {
    let lead: Int
    let input: [Int]
    let output: [Int]
    let kernel: [Int]
    let strides: [Int]
    let dilations: [Int]
    let top: Int
    let bottom: Int
    let left: Int
    let right: Int
}

struct NetworkGraph {
    /// Shapes of the values for one sample; the model's inputs come first.
    private(set) var shapes: [[Int]] = []
    private(set) var nodes: [NetworkNode] = []
    private(set) var inputs: [(name: String, value: Int, declared: [Int])] = []
    /// The value that each name stands for after all layers.
    private(set) var values: [String: Int] = [:]

    init(_ network: NeuralNetwork, _ description: FunctionDescription) throws {
        if network.hasPreprocessing { throw MLModelError(.generic, "preprocessing of images is not supported") }
        for feature in description.inputs { try add(feature, mapsToRankFive: network.mapsToRankFive) }
        for layer in network.layers { try add(layer, mapsToRankFive: network.mapsToRankFive) }
    }

    private mutating func add(_ feature: FeatureDescription, mapsToRankFive: Bool) throws {
        let declared: [Int]
        switch feature.type {
        case .multiArray(let array): declared = array.shape
        case .double, .int64: declared = [1]
        default: throw MLModelError(.featureType, "the input '\(feature.name)' is no array")
        }
        var shape = declared
        if mapsToRankFive {
            switch declared.count {
            case 1: shape = [1, 1, declared[0], 1, 1]
            case 3: shape = [1, 1] + declared
            default:
                throw MLModelError(.generic, "the input '\(feature.name)' has rank \(declared.count), not 1 or 3")
            }
        }
        guard !shape.isEmpty, shape.count <= 5, let layout = ArrayLayout(cOrder: shape), layout.count > 0 else {
            throw MLModelError(.generic, "the input '\(feature.name)' cannot have the shape \(declared)")
        }
        guard values[feature.name] == nil else { throw MLModelError(.generic, "two inputs are '\(feature.name)'") }
        inputs.append((feature.name, shapes.count, declared))
        values[feature.name] = shapes.count
        shapes.append(shape)
    }

    private mutating func add(_ layer: NetworkLayer, mapsToRankFive: Bool) throws {
        guard layer.inputs.count == 1, layer.outputs.count == 1 else {
            throw layer.unsupported("\(layer.inputs.count) inputs and \(layer.outputs.count) outputs")
        }
        guard let input = values[layer.inputs[0]] else {
            throw MLModelError(.generic, "the layer '\(layer.name)' reads '\(layer.inputs[0])', which nothing makes")
        }
        let (operation, shape) = try layer.resolved(for: shapes[input], mapsToRankFive: mapsToRankFive)
        guard let layout = ArrayLayout(cOrder: shape), layout.count > 0 else {
            throw MLModelError(.generic, "the layer '\(layer.name)' makes the shape \(shape)")
        }
        nodes.append(NetworkNode(layer: layer, input: input, output: shapes.count, operation: operation))
        values[layer.outputs[0]] = shapes.count
        shapes.append(shape)
    }
}

extension NetworkLayer {
    func unsupported(_ what: String) -> MLModelError {
        MLModelError(.generic, "the layer '\(name)' is not supported: \(what)")
    }

    private func wrong(_ what: String) -> MLModelError { MLModelError(.generic, "the layer '\(name)': \(what)") }

    fileprivate func resolved(for shape: [Int], mapsToRankFive: Bool) throws -> (NetworkOperation, [Int]) {
        switch kind {
        case .innerProduct(let product): return try resolved(product, shape)
        case .convolution(let convolution): return try resolved(convolution, shape)
        case .pooling(let pooling): return try resolved(pooling, shape)
        case .activation(let activation): return (.activation(activation), shape)
        case .softmax: return (.softmax(axis: shape.count >= 3 ? shape.count - 3 : shape.count - 1), shape)
        case .flatten(let channelsLast):
            guard shape.count >= 3 else { return (.reshape, shape) }
            let flat: [Int] = Array(shape.dropLast(3)) + [shape.suffix(3).reduce(1, *), 1, 1]
            return (channelsLast ? .flattenChannelsLast : .reshape, flat)
        case .reshape(let target, let channelsLast):
            if channelsLast { throw unsupported("reshape in the order of channels last") }
            let full =
                mapsToRankFive && target.count < 5 ? Array(repeating: 1, count: 5 - target.count) + target : target
            guard ArrayLayout(cOrder: full)?.count == shape.reduce(1, *) else {
                throw wrong("the shape \(shape) cannot become \(target)")
            }
            return (.reshape, full)
        case .other(let number): throw unsupported("a layer of kind \(number)")
        }
    }

    private func resolved(_ product: InnerProduct, _ shape: [Int]) throws -> (NetworkOperation, [Int]) {
        let taken = shape.count >= 4 ? 3 : 1
        let features = shape.suffix(taken).reduce(1, *)
        let lead = shape.dropLast(taken).reduce(1, *)
        guard product.inputChannels == features, product.outputChannels > 0 else {
            throw wrong("it takes \(product.inputChannels) channels and gets the shape \(shape)")
        }
        let result: [Int] = Array(shape.dropLast(taken)) + [product.outputChannels] + (taken == 3 ? [1, 1] : [])
        let operation = NetworkOperation.product(
            lead: lead, input: features, output: product.outputChannels,
            weights: try values(product.weights, [product.outputChannels, features]),
            bias: try product.bias.map { try values($0, [product.outputChannels]) })
        return (operation, result)
    }

    private func resolved(_ layer: Convolution, _ shape: [Int]) throws -> (NetworkOperation, [Int]) {
        if layer.isTransposed { throw unsupported("a deconvolution") }
        guard shape.count >= 3, layer.outputChannels > 0, layer.outputChannels % layer.groups == 0,
            layer.kernelChannels.multipliedReportingOverflow(by: layer.groups) == (shape[shape.count - 3], false)
        else { throw wrong("its \(layer.kernelChannels) channels in \(layer.groups) groups do not fit \(shape)") }
        let windows = try windows(
            shape, layer.outputChannels, layer.kernel, layer.strides, layer.dilations, layer.padding)
        let operation = NetworkOperation.convolution(
            windows, groups: layer.groups,
            weights: try values(layer.weights, [layer.outputChannels, layer.kernelChannels] + layer.kernel),
            bias: try layer.bias.map { try values($0, [layer.outputChannels]) })
        return (operation, Array(shape.dropLast(3)) + windows.output)
    }

    private func resolved(_ layer: Pooling, _ shape: [Int]) throws -> (NetworkOperation, [Int]) {
        guard shape.count >= 3 else { throw wrong("it cannot pool the shape \(shape)") }
        var layer = layer
        if layer.isGlobal {
            (layer.kernel, layer.strides) = (Array(shape.suffix(2)), [1, 1])
            layer.padding = .valid(top: 0, bottom: 0, left: 0, right: 0)
        }
        let windows = try windows(
            shape, shape[shape.count - 3], layer.kernel, layer.strides, [1, 1], layer.padding)
        let reach =
            max(windows.top, windows.bottom) < layer.kernel[0] && max(windows.left, windows.right) < layer.kernel[1]
        guard reach else { throw wrong("its padding is larger than its windows") }
        return (.pooling(windows, layer), Array(shape.dropLast(3)) + windows.output)
    }

    private func windows(
        _ shape: [Int], _ channels: Int, _ kernel: [Int], _ strides: [Int], _ dilations: [Int], _ padding: Padding
    ) throws -> NetworkWindows {
        guard (kernel + strides + dilations).allSatisfy({ (1..<1 << 20).contains($0) }) else {
            throw wrong("windows of \(kernel) with strides \(strides) and dilations \(dilations)")
        }
        let image = Array(shape.suffix(2))
        let reach = (0..<2).map { (kernel[$0] - 1) * dilations[$0] + 1 }
        var edges: [Int]
        switch padding {
        case .valid(let top, let bottom, let left, let right): edges = [top, bottom, left, right]
        case .same(let topLeftHeavy):
            edges = (0..<2).flatMap { axis in
                let count = (image[axis] + strides[axis] - 1) / strides[axis]
                let total = max((count - 1) * strides[axis] + reach[axis] - image[axis], 0)
                return topLeftHeavy ? [total - total / 2, total / 2] : [total / 2, total - total / 2]
            }
        case .includeLastPixel: throw unsupported("pooling that includes the last pixel")
        }
        guard edges.allSatisfy({ $0 < 1 << 20 }) else { throw wrong("padding of \(edges)") }
        let padded: [Int] = [image[0] + edges[0] + edges[1], image[1] + edges[2] + edges[3]]
        guard padded[0] >= reach[0], padded[1] >= reach[1] else {
            throw wrong("a window of \(reach) is larger than the image \(image)")
        }
        let counts: [Int] = (0..<2).map { (padded[$0] - reach[$0]) / strides[$0] + 1 }
        return NetworkWindows(
            lead: shape.dropLast(3).reduce(1, *), input: Array(shape.suffix(3)), output: [channels] + counts,
            kernel: kernel, strides: strides, dilations: dilations, top: edges[0], bottom: edges[1], left: edges[2],
            right: edges[3])
    }

    private func values(_ weights: NetworkWeights, _ shape: [Int]) throws -> [Float] {
        let values: [Float]
        switch weights.values {
        case .floats(let floats): values = floats
        case .halves(let bytes):
            values = stride(from: 0, to: bytes.count - 1, by: 2).map {
                Float(Float16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8))
            }
        case .other: throw unsupported("quantised weights")
        }
        guard ArrayLayout(cOrder: shape)?.count == values.count else {
            throw wrong("it has \(values.count) weights where \(shape) are needed")
        }
        return values
    }
}
