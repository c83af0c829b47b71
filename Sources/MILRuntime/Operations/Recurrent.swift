// Recurrent layers: the part of the inputs as one product, then the steps.
import RLXKernels

let recurrentRules: [OperationRule] = [
    OperationRule(
        "rnn", common.merging(["activation": "tanh"]) { one, _ in one },
        lower: { (call) throws(RuntimeError) in
            var layer = try RecurrentLayer(call, cell: RLXK_RNN, gates: 1)
            layer.inner = try call.gateFunction("activation")
            let inputs = try layer.inputs(call, biases: ["bias"])
            return try RecurrentLayer.run(call, [layer], [inputs])
        }),
    OperationRule(
        "gru",
        common.merging([
            "recurrent_activation": "sigmoid", "activation": "tanh", "reset_after": false, "input_bias": .absent,
        ]) { one, _ in one },
        lower: { (call) throws(RuntimeError) in
            let resetsAfter = try call.bool("reset_after")
            var layer = try RecurrentLayer(call, cell: resetsAfter ? RLXK_GRU_RESET_AFTER : RLXK_GRU, gates: 3)
            layer.recurrent = try call.gateFunction("recurrent_activation")
            layer.inner = try call.gateFunction("activation")
            var inputs = try layer.inputs(call, biases: resetsAfter ? ["input_bias"] : ["bias", "input_bias"])
            if resetsAfter, call.has("bias") {
                (inputs, layer.bias) = try layer.splitting(call, inputs)
            }
            return try RecurrentLayer.run(call, [layer], [inputs])
        }),
    OperationRule(
        "lstm",
        common.merging([
            "initial_c": .required, "peephole": .absent, "weight_ih_back": .absent, "weight_hh_back": .absent,
            "bias_back": .absent, "peephole_back": .absent, "recurrent_activation": "sigmoid",
            "cell_activation": "tanh", "activation": "tanh", "clip": .absent,
        ]) { one, _ in one },
        lower: { (call) throws(RuntimeError) in
            let isBoth = try call.direction() == .bidirectional
            var forward = try RecurrentLayer(call, cell: RLXK_LSTM, gates: 4, half: isBoth ? 0 : nil)
            try forward.setLSTM(call, peephole: "peephole")
            let inputs = try forward.inputs(call, biases: ["bias"])
            guard isBoth else { return try RecurrentLayer.run(call, [forward], [inputs]) }
            var backward = try RecurrentLayer(call, cell: RLXK_LSTM, gates: 4, half: 1)
            try backward.setLSTM(call, peephole: "peephole_back")
            backward.isReverse = true
            let turned = try backward.inputs(call, biases: ["bias_back"])
            return try RecurrentLayer.run(call, [forward, backward], [inputs, turned])
        }),
]

private let common: [String: Default] = [
    "x": .required, "initial_h": .required, "weight_ih": .required, "weight_hh": .required, "bias": .absent,
    "direction": "forward", "output_sequence": false,
]

private enum Direction: String, CaseIterable {
    case forward, reverse, bidirectional
}

private enum GateFunction: String, CaseIterable {
    case linear, relu, tanh, sigmoid
    case scaledTanh = "scaled_tanh"
    case hardSigmoid = "hard_sigmoid"
    case sigmoidHard = "sigmoid_hard"

    var kernelFunction: rlxk_gate_function {
        switch self {
        case .linear: RLXK_GATE_LINEAR
        case .relu: RLXK_GATE_RELU
        case .tanh, .scaledTanh: RLXK_GATE_TANH
        case .sigmoid: RLXK_GATE_SIGMOID
        case .hardSigmoid, .sigmoidHard: RLXK_GATE_HARD_SIGMOID
        }
    }
}

extension Call {
    fileprivate func direction() throws(RuntimeError) -> Direction { try choice("direction", Direction.self) }

    fileprivate func gateFunction(_ name: String) throws(RuntimeError) -> rlxk_gate_function {
        try choice(name, GateFunction.self).kernelFunction
    }
}

/// One direction of a layer, its operands checked.
private struct RecurrentLayer {
    var cell: rlxk_cell
    var gates: Int
    var x: View
    var weightIH: View
    var weightHH: View
    var h0: View
    var c0: View?
    var size: Int
    var isReverse: Bool
    var keepsAll: Bool
    var recurrent = RLXK_GATE_SIGMOID
    var inner = RLXK_GATE_TANH
    var outer = RLXK_GATE_TANH
    var clip = Float.infinity
    var bias: View?
    var peephole: View?

    /// `half` is the part of the initial values that a direction of two takes; the second has weights of its own.
    init(_ call: Call, cell: rlxk_cell, gates: Int, half: Int? = nil) throws(RuntimeError) {
        self.cell = cell
        self.gates = gates
        let back = half == 1 ? "_back" : ""
        x = try call.float(view: "x")
        weightIH = try call.float(view: "weight_ih" + back)
        weightHH = try call.float(view: "weight_hh" + back)
        let direction = try call.direction()
        guard direction != .bidirectional || cell == RLXK_LSTM else {
            throw call.failure(.value(parameter: "direction", got: "bidirectional", expected: "forward or reverse"))
        }
        isReverse = direction == .reverse
        keepsAll = try call.bool("output_sequence")
        guard x.rank == 3, x.shape[0] >= 1 else {
            throw call.failure(.shape(parameter: "x", got: x.shape, expected: "[steps, batch, inputs]"))
        }
        size = weightHH.shape.last ?? 0
        guard size < 1 << 30, weightHH.shape == [gates * size, size] else {
            throw call.failure(
                .shape(parameter: "weight_hh" + back, got: weightHH.shape, expected: "[\(gates) * size, size]"))
        }
        guard weightIH.shape == [gates * size, x.shape[2]] else {
            throw call.failure(
                .shape(
                    parameter: "weight_ih" + back, got: weightIH.shape,
                    expected: "[\(gates * size), \(x.shape[2])]"))
        }
        h0 = try Self.initial(call, "initial_h", [x.shape[1], size], half)
        if cell == RLXK_LSTM { c0 = try Self.initial(call, "initial_c", [x.shape[1], size], half) }
    }

    private static func initial(
        _ call: Call, _ name: String, _ shape: [Int], _ half: Int?
    ) throws(RuntimeError) -> View {
        let value = try call.float(view: name)
        let expected = half == nil ? shape : [shape[0], 2 * shape[1]]
        guard value.shape == expected else {
            throw call.failure(.shape(parameter: name, got: value.shape, expected: "\(expected)"))
        }
        guard let half else { return value }
        return value.sliced(axis: 1, start: half * shape[1], count: shape[1])
    }

    mutating func setLSTM(_ call: Call, peephole name: String) throws(RuntimeError) {
        recurrent = try call.gateFunction("recurrent_activation")
        inner = try call.gateFunction("cell_activation")
        outer = try call.gateFunction("activation")
        if call.has("clip") { clip = try call.float("clip") }
        if call.has(name) { peephole = try vector(call, name, 3 * size) }
    }

    private func vector(_ call: Call, _ name: String, _ count: Int) throws(RuntimeError) -> View {
        let value = try call.float(view: name)
        guard value.shape == [count] else {
            throw call.failure(.shape(parameter: name, got: value.shape, expected: "[\(count)]"))
        }
        return try call.graph.dense(call.graph.cast(value, to: .float32))
    }

    /// x W^T and the biases that are given.
    func inputs(_ call: Call, biases: [String]) throws(RuntimeError) -> View {
        // Rows that lie apart would be a product for each step.
        var result = try call.graph.product(call.graph.dense(x), weightIH.swappingLastAxes, .float32)
        for name in biases where call.has(name) {
            result = try call.graph.map(RLXK_ADD, [result, vector(call, name, gates * size)], .float32)
        }
        return result
    }

    /// A GRU's hidden bias: that of the reset and update gates goes to the inputs, that of the candidate stays apart.
    func splitting(_ call: Call, _ inputs: View) throws(RuntimeError) -> (View, View) {
        let bias = try vector(call, "bias", gates * size)
        let zero = try call.graph.scalar(0, .float32).broadcast(to: [size])
        let outside = try call.graph.concat(
            [bias.sliced(axis: 0, start: 0, count: size), zero, bias.sliced(axis: 0, start: 2 * size, count: size)],
            axis: 0)
        let inside = try call.graph.dense(bias.sliced(axis: 0, start: size, count: size))
        return (try call.graph.map(RLXK_ADD, [inputs, outside], .float32), inside)
    }

    /// The directions of a layer side by side; that of two which goes backwards gives its values in the order of time.
    static func run(_ call: Call, _ layers: [RecurrentLayer], _ inputs: [View]) throws(RuntimeError) -> [View] {
        let graph = call.graph
        let layer = layers[0]
        let (batch, width) = (layer.x.shape[1], layers.count * layer.size)
        var writes = [
            try graph.empty(.float32, [layer.keepsAll ? layer.x.shape[0] : 1, batch, width]),
            try graph.empty(.float32, [batch, width]),
        ]
        if layer.cell == RLXK_LSTM { writes.append(try graph.empty(.float32, [batch, width])) }
        var reads: [View] = []
        var places: [Places] = []
        for (layer, inputs) in zip(layers, inputs) { places.append(try layer.operands(graph, inputs, &reads)) }
        if writes[0].count > 0 { graph.add(.kernel(kernel(layers, reads, places, writes))) }
        return try writes.map { (view) throws(RuntimeError) in try graph.cast(view, to: layer.x.type) }
    }

    /// Where a direction's operands are among the kernel's.
    private struct Places {
        var inputs, weight, h0: Int
        var c0, bias, peephole: Int?
    }

    private func operands(
        _ graph: GraphBuilder, _ inputs: View, _ reads: inout [View]
    ) throws(RuntimeError) -> Places {
        func add(_ view: View) throws(RuntimeError) -> Int {
            reads.append(try graph.dense(graph.cast(view, to: .float32)))
            return reads.count - 1
        }
        var places = Places(inputs: try add(inputs), weight: try add(weightHH.swappingLastAxes), h0: try add(h0))
        if let c0 { places.c0 = try add(c0) }
        if let bias { places.bias = try add(bias) }
        if let peephole { places.peephole = try add(peephole) }
        return places
    }

    private static func kernel(
        _ layers: [RecurrentLayer], _ reads: [View], _ places: [Places], _ writes: [View]
    ) -> Kernel {
        let layer = layers[0]
        let (steps, batch, size) = (layer.x.shape[0], layer.x.shape[1], layer.size)
        let products = Double(steps) * Double(batch) * Double(layer.gates * size) * Double(size + 8)
        return Kernel(
            run: rlxk_recurrent_run, reads: reads, writes: writes,
            nanoseconds: Double(layers.count) * products * (batch == 1 ? 0.1 : 0.03),
            scratch: min(batch, Int(RLXK_RECURRENT_ROWS)) * (layer.gates + 2) * size + layer.packedWeights
        ) { arguments, memory in
            let list = zip(layers, places).enumerated().map { index, direction in
                direction.0.encoded(direction.1, offset: index * size, pitch: layers.count * size, memory)
            }
            return UnsafeRawPointer(
                arguments.store(
                    rlxk_recurrent(
                        list: UnsafePointer(arguments.store(list)), count: Int32(list.count),
                        scratch: memory.scratch.assumingMemoryBound(to: Float.self),
                        scratch_stride: Int64(memory.scratchStride))))
        }
    }

    private var packedWeights: Int {
        if x.shape[1] == 1 { return 0 }
        let parts = cell == RLXK_GRU || cell == RLXK_GRU_RESET_AFTER ? gates : 1
        let panel = Int(RLXK_RECURRENT_PANEL)
        return parts * ((gates / parts * size + panel - 1) / panel * panel) * size
    }

    /// `offset` is where the direction's part of each row of the results begins.
    private func encoded(_ places: Places, offset: Int, pitch: Int, _ memory: KernelMemory) -> rlxk_direction {
        func floats(_ index: Int) -> UnsafePointer<Float> {
            UnsafePointer(memory.read(index).assumingMemoryBound(to: Float.self))
        }
        func written(_ index: Int) -> UnsafeMutablePointer<Float> {
            memory.write(index).assumingMemoryBound(to: Float.self) + offset
        }
        return rlxk_direction(
            cell: cell, reverse: isReverse ? 1 : 0, by_time: pitch > size ? 1 : 0, keeps_all: keepsAll ? 1 : 0,
            recurrent: recurrent, inner: inner, outer: outer, clip: clip, steps: Int64(x.shape[0]),
            batch: Int64(x.shape[1]), size: Int64(size), inputs: floats(places.inputs), weight: floats(places.weight),
            bias: places.bias.map(floats), peephole: places.peephole.map(floats), h0: floats(places.h0),
            c0: places.c0.map(floats), sequence: written(0), h: written(1),
            c: cell == RLXK_LSTM ? written(2) : nil, pitch: Int64(pitch))
    }
}
