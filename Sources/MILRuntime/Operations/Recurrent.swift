// Recurrent layers: the part of the inputs as one product, then the steps.
import RLXKernels

let recurrentRules: [OperationRule] = [
    OperationRule(
        "rnn", common.merging(["activation": "tanh"]) { one, _ in one },
        lower: { (call) throws(RuntimeError) in
            var layer = try RecurrentLayer(call, cell: RLXK_RNN, gates: 1)
            layer.inner = try call.gateFunction("activation")
            let inputs = try layer.inputs(call, biases: ["bias"])
            return try layer.run(call, inputs).results
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
            return try layer.run(call, inputs).results
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
            let first = try forward.run(call, forward.inputs(call, biases: ["bias"]))
            guard isBoth else { return first.results }
            var backward = try RecurrentLayer(call, cell: RLXK_LSTM, gates: 4, half: 1)
            try backward.setLSTM(call, peephole: "peephole_back")
            backward.isReverse = true
            let second = try backward.run(call, backward.inputs(call, biases: ["bias_back"]))
            // The backward half is turned back to the order of time.
            let steps = second.sequence.shape[0]
            let turned = second.sequence.sliced(axis: 0, start: steps - 1, count: steps, step: -1)
            return [
                try call.graph.concat([first.sequence, turned], axis: 2),
                try call.graph.concat([first.h, second.h], axis: 1),
                try call.graph.concat([first.c, second.c], axis: 1),
            ]
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
        var result = try call.graph.product(x, weightIH.swappingLastAxes, .float32)
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

    struct Results {
        var sequence: View
        var h: View
        var c: View
        var results: [View]
    }

    func run(_ call: Call, _ inputs: View) throws(RuntimeError) -> Results {
        let graph = call.graph
        let (steps, batch) = (x.shape[0], x.shape[1])
        let sequence = try graph.empty(.float32, [keepsAll ? steps : 1, batch, size])
        let h = try graph.empty(.float32, [batch, size])
        let c = try graph.empty(.float32, [batch, size])
        var reads = [
            try graph.dense(inputs), try graph.dense(graph.cast(weightHH.swappingLastAxes, to: .float32)),
            try graph.dense(graph.cast(h0, to: .float32)),
        ]
        var places: [Int?] = []
        for view in [c0, bias, peephole] {
            places.append(view == nil ? nil : reads.count)
            if let view { reads.append(try graph.dense(graph.cast(view, to: .float32))) }
        }
        if sequence.count > 0 {
            graph.add(.kernel(kernel(reads, places, [sequence, h, c], steps: steps, batch: batch)))
        }
        let type = x.type
        let first = try graph.cast(sequence, to: type)
        let second = try graph.cast(h, to: type)
        let third = try graph.cast(c, to: type)
        return Results(
            sequence: first, h: second, c: third,
            results: cell == RLXK_LSTM ? [first, second, third] : [first, second])
    }

    private func kernel(
        _ reads: [View], _ places: [Int?], _ writes: [View], steps: Int, batch: Int
    ) -> Kernel {
        let work = Double(steps) * Double(batch) * Double(gates * size) * Double(size + 8)
        return Kernel(
            run: rlxk_recurrent_run, reads: reads, writes: writes, nanoseconds: work * 0.2, scratch: (gates + 2) * size
        ) { arguments, memory in
            func floats(_ index: Int) -> UnsafePointer<Float> {
                UnsafePointer(memory.read(index).assumingMemoryBound(to: Float.self))
            }
            func written(_ index: Int) -> UnsafeMutablePointer<Float> {
                memory.write(index).assumingMemoryBound(to: Float.self)
            }
            return UnsafeRawPointer(
                arguments.store(
                    rlxk_recurrent(
                        cell: cell, reverse: isReverse ? 1 : 0, keeps_all: keepsAll ? 1 : 0, recurrent: recurrent,
                        inner: inner, outer: outer, clip: clip, steps: Int64(steps), batch: Int64(batch),
                        size: Int64(size), inputs: floats(0), weight: floats(1), bias: places[1].map(floats),
                        peephole: places[2].map(floats), h0: floats(2), c0: places[0].map(floats),
                        sequence: written(0), h: written(1), c: written(2),
                        scratch: memory.scratch.assumingMemoryBound(to: Float.self),
                        scratch_stride: Int64(memory.scratchStride))))
        }
    }
}
