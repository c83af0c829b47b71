// Random numbers. With a seed every run of a plan draws the same ones; without, each run draws others.
import RLXKernels

let randomRules: [OperationRule] = [
    OperationRule("random_uniform", ["shape": .required, "low": 0.0, "high": 1.0, "seed": -1]) {
        (call) throws(RuntimeError) in
        try call.random(RLXK_UNIFORM, p: call.float("low"), q: call.float("high"), like: ["low", "high"])
    },
    OperationRule("random_normal", ["shape": .required, "mean": 0.0, "stddev": 1.0, "seed": -1]) {
        (call) throws(RuntimeError) in
        try call.random(RLXK_NORMAL, p: call.float("mean"), q: call.float("stddev"), like: ["mean", "stddev"])
    },
    OperationRule("random_bernoulli", ["shape": .required, "prob": 0.5, "seed": -1]) {
        (call) throws(RuntimeError) in
        try call.random(RLXK_BERNOULLI, p: call.float("prob"), q: 0, like: ["prob"])
    },
    OperationRule("random_categorical", ["x": .required, "mode": "logits", "size": 1, "seed": -1]) {
        (call) throws(RuntimeError) in
        let x = try call.float(view: "x")
        let draws = try call.int("size")
        guard let classes = x.shape.last, classes >= 1, draws >= 1, draws < 1 << 31 else {
            throw call.failure(.shape(parameter: "x", got: x.shape, expected: "classes to draw from"))
        }
        let graph = call.graph
        let isLogits = try call.choice("mode", CategoricalMode.self) == .logits
        let weights = try isLogits ? graph.softmax(x, axis: x.rank - 1, .float32) : graph.cast(x, to: .float32)
        let result = try graph.random(
            RLXK_CATEGORICAL, p: 0, q: 0, seed: call.int("seed"), shape: x.shape.dropLast() + [draws],
            classes: (try graph.dense(weights), classes, draws))
        return try graph.cast(result, to: x.type)
    },
]

private enum CategoricalMode: String, CaseIterable {
    case logits, probs
}

extension Call {
    /// The type of the result is that of the first of the parameters `names` that is given.
    fileprivate func random(
        _ distribution: rlxk_distribution, p: Float, q: Float, like names: [String]
    ) throws(RuntimeError) -> View {
        var type = ElementType.float32
        for name in names.reversed() where has(name) { type = try float(view: name).type }
        let result = try graph.random(distribution, p: p, q: q, seed: int("seed"), shape: ints("shape"), classes: nil)
        return try graph.cast(result, to: type)
    }
}

extension GraphBuilder {
    fileprivate func random(
        _ distribution: rlxk_distribution, p: Float, q: Float, seed: Int, shape: [Int],
        classes: (weights: View, count: Int, draws: Int)?
    ) throws(RuntimeError) -> View {
        let result = try empty(.float32, shape)
        if result.count == 0 { return result }
        let continues = seed < 0
        let key = continues ? UInt64.random(in: .min ... .max) : UInt64(seed)
        add(
            .kernel(
                // The kernel counts the runs: one worker alone may call it.
                Kernel(
                    run: rlxk_random_run, reads: classes.map { [$0.weights] } ?? [], writes: [result], nanoseconds: 0,
                    isRandom: true
                ) { arguments, memory in
                    UnsafeRawPointer(
                        arguments.store(
                            rlxk_random(
                                distribution: distribution, continues: continues ? 1 : 0, p: p, q: q, seed: key,
                                runs: arguments.store(UInt64(0)), count: Int64(result.count),
                                out: memory.write(0).assumingMemoryBound(to: Float.self),
                                probabilities: classes == nil
                                    ? nil : UnsafePointer(memory.read(0).assumingMemoryBound(to: Float.self)),
                                classes: Int64(classes?.count ?? 1), draws: Int64(classes?.draws ?? 1))))
                }))
        return result
    }
}
