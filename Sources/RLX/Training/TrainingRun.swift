// One run's engine: values, counters and programs of a bundle, stepped. Knows neither tasks nor files of results.

/// Not for two threads at once; its session's queue sees to that. On an error nothing has changed.
final class TrainingRun {
    let bundle: TrainingBundle
    let store = TensorStore()
    var settings: RunSettings
    /// Values of a checkpoint that this run does not use and gives back.
    var carried: [String: Tensor] = [:]
    /// What buffers held before an open window, to go back to when its update is skipped.
    var windowBuffers: [String: Tensor] = [:]
    private let device: Device
    private var programs: [ProgramKey: BundleProgram] = [:]

    private struct ProgramKey: Hashable {
        let name: String
        let form: Int
    }

    private var manifest: BundleManifest { bundle.manifest }
    private(set) var state: RunState {
        get { settings.state }
        set { settings.state = newValue }
    }

    init(_ bundle: TrainingBundle, device: Device) throws(RLXError) {
        self.bundle = bundle
        self.device = device
        let name = bundle.manifest.checkpoint
        let file = try SafeTensors(contentsOf: bundle.file(name))
        settings = try RunSettings(file.metadata, subject: name)
        try take(file, settings, subject: name)
        _ = try program("train")
    }

    /// What the outputs of rank 0 were, and whether the update was applied.
    struct Outcome {
        let loss: Double
        let applied: Bool
        var outputs: [String: Double] = [:]
    }

    // MARK: Updates

    func step(_ batch: [String: Tensor]) throws(RLXError) -> Outcome {
        try requireNothingPending("step")
        let form = try form(of: batch)
        let rate = try state.schedule.rate(at: state.counters.steps)
        let fresh = try estimate(batch, form)
        let train = try program("train", form)
        try train.run(withNoise(batch, for: train), numbers(rate, fresh).merging(scaleInputs) { $1 })
        var outputs = train.numbers()
        let applied = outputs.removeValue(forKey: Name.finite) != 0
        count(applied: applied, microBatches: 1)
        return Outcome(loss: outputs.removeValue(forKey: manifest.loss) ?? .nan, applied: applied, outputs: outputs)
    }

    func accumulate(_ batch: [String: Tensor], weight: Double) throws(RLXError) -> Double {
        guard weight.isFinite, weight > 0 else { throw .badWeight(weight) }
        let form = try form(of: batch)
        var (window, buffers) = (state.window, windowBuffers)
        if window.count == 0 { (window, buffers) = try opened(batch, form) }
        let program = try program("accumulate", form)
        try program.run(withNoise(batch, for: program), scaleInputs.merging([Name.weight: weight]) { $1 })
        let loss = program.numbers()[manifest.loss] ?? .nan
        window.count += 1
        window.weight += weight
        window.loss = TextDouble(window.loss.value + weight * loss)
        (state.window, windowBuffers) = (window, buffers)
        state.counters.microBatches += 1
        return loss
    }

    /// Nil when nothing is pending.
    func applyWindow() throws(RLXError) -> Outcome? {
        let window = state.window
        guard window.count > 0 else { return nil }
        let fresh = manifest.estimates.indices.filter { index in
            window.fresh.contains(manifest.estimates[index].address)
        }
        let rate = try state.schedule.rate(at: state.counters.steps)
        let program = try program("apply")
        try program.run([:], numbers(rate, fresh).merging([Name.total: window.weight]) { $1 })
        let applied = program.numbers()[Name.finite] != 0
        if applied { closeWindow() } else { try discardWindow() }
        count(applied: applied, microBatches: 0)
        return Outcome(loss: window.loss.value / window.weight, applied: applied)
    }

    /// The loss and the gradients of the trained params, without scale; changes nothing.
    func gradients(_ batch: [String: Tensor]) throws(RLXError) -> (Double, [String: Tensor]) {
        let program = try program("gradients", form(of: batch))
        try program.run(withNoise(batch, for: program), scaleInputs)
        let tensors = program.tensors()
        var gradients: [String: Tensor] = [:]
        for name in trained { gradients[name] = tensors[Name.gradient + name] }
        return (program.numbers()[manifest.loss] ?? .nan, gradients)
    }

    /// One update from gradients of all trained params; whether it was applied.
    func apply(_ gradients: [String: Tensor]) throws(RLXError) -> Bool {
        try requireNothingPending("applyGradients")
        for name in gradients.keys where !trained.contains(name) {
            throw .noSuchValue(name, "trained param", among: trained)
        }
        var feeds: [String: Tensor] = [:]
        for name in trained {
            guard let gradient = gradients[name] else { throw .missingFeed(name) }
            feeds[Name.gradient + name] = gradient
        }
        let rate = try state.schedule.rate(at: state.counters.steps)
        let program = try program("given")
        try program.run(feeds, numbers(rate, []))
        let applied = program.numbers()[Name.finite] != 0
        count(applied: applied, microBatches: 1)
        return applied
    }

    private var trained: [String] { manifest.params.filter(\.value.trained).map(\.key) }

    /// Forgets the pending micro-batches and what they did to buffers.
    func discardWindow() throws(RLXError) {
        guard state.window.count > 0 else { return }
        let (start, buffers) = (state.window.start, windowBuffers)
        closeWindow()
        state.counters.microBatches = start
        for (name, value) in buffers { try put(name, value) }
    }

    private func closeWindow() {
        state.window = .init()
        windowBuffers = [:]
    }

    func requireNothingPending(_ call: String) throws(RLXError) {
        guard state.window.count == 0 else { throw .pending(call, count: state.window.count) }
    }

    func observe(epochLoss: Double) { state.schedule.observe(epochLoss) }

    func setSchedule(_ schedule: Schedule) { state.schedule = schedule }

    private func opened(
        _ feeds: [String: Tensor], _ form: Int
    ) throws(RLXError) -> (RunState.Window, [String: Tensor]) {
        let fresh = try estimate(feeds, form)
        var buffers: [String: Tensor] = [:]
        for (name, buffer) in manifest.buffers where buffer.assigned {
            buffers[name] = try store.get(buffer.feature).reshaped(buffer.shape)
        }
        for accumulator in manifest.accumulators.values {
            try store.put(accumulator.feature, .zeros(accumulator.shape).atBoundary)
        }
        let window = RunState.Window(
            start: state.counters.microBatches, fresh: fresh.map { manifest.estimates[$0].address })
        return (window, buffers)
    }

    private func count(applied: Bool, microBatches: Int) {
        if applied {
            state.counters.steps += 1
            state.counters.microBatches += microBatches
        }
        state.counters.skips = applied ? 0 : state.counters.skips + 1
        state.scale.observe(applied: applied, manifest.scale)
    }

    // MARK: Looking

    func evaluate(_ batch: [String: Tensor]) throws(RLXError) -> Double {
        let program = try program("evaluate", form(of: batch))
        try program.run(withNoise(batch, for: program))
        return program.numbers()[manifest.loss] ?? .nan
    }

    func predict(_ values: [String: Tensor]) throws(RLXError) -> [String: Tensor] {
        let needed = Set(manifest.predictInputs)
        let given = values.filter { needed.contains($0.key) || manifest.inputs[$0.key] == nil }
        let program = try program("infer", form(of: given, needed))
        try program.run(withNoise(given, for: program))
        return program.tensors()
    }

    /// Gives back the memory of programs that the usual step does not need; they are made again when they are.
    func dropIdlePrograms() {
        let usual: Set<String> = state.window.count > 0 ? ["accumulate", "apply"] : ["train"]
        programs = programs.filter { usual.contains($0.key.name) && $0.key.form == 0 }
    }

    // MARK: What programs are fed

    private enum Name {
        static let finite = "session/finite"
        static let weight = "session/weight"
        static let total = "session/total"
        static let scale = "session/loss_scale"
        static let unscale = "session/unscale"
        static let gradient = "gradient/"
        static let noise = "noise/"
        static let probe = "probe/"
    }

    private func program(_ name: String, _ form: Int = 0) throws(RLXError) -> BundleProgram {
        let key = ProgramKey(name: name, form: form)
        if let made = programs[key] { return made }
        let made = try BundleProgram(name, form: form, of: bundle, store: store, device: device)
        programs[key] = made
        return made
    }

    /// The form whose inputs, or those of them that are needed, have just the shapes of the batch.
    private func form(of batch: [String: Tensor], _ needed: Set<String>? = nil) throws(RLXError) -> Int {
        let inputs = manifest.inputs.filter { needed?.contains($0.key) ?? true }
        for name in batch.keys where inputs[name] == nil { throw .noSuchValue(name, "input", among: inputs.keys) }
        for (name, type) in inputs {
            guard let tensor = batch[name] else { throw .missingFeed(name) }
            guard tensor.dtype == type.dtype else {
                throw .dtypeMismatch(name, expected: type.dtype, got: tensor.dtype)
            }
        }
        let form = manifest.forms.firstIndex { form in batch.allSatisfy { form.inputs[$0]?.shape == $1.shape } }
        if let form { return form }
        for (name, tensor) in batch.sorted(by: { $0.key < $1.key }) {
            let shapes = manifest.forms.compactMap { $0.inputs[name]?.shape }
            if !shapes.contains(tensor.shape) { throw .noSuchSize(name, tensor.shape, among: shapes) }
        }
        throw .sizesDisagree(batch)
    }

    private func withNoise(_ feeds: [String: Tensor], for program: BundleProgram) -> [String: Tensor] {
        drawn(feeds, for: program, Name.noise, Philox.uniform)
    }

    /// The feeds with random numbers for the inputs of that prefix.
    private func drawn(
        _ feeds: [String: Tensor], for program: BundleProgram, _ prefix: String,
        _ draw: (Philox.Address, Int) -> [Float]
    ) -> [String: Tensor] {
        var feeds = feeds
        for (name, shape) in program.inputShapes where name.hasPrefix(prefix) {
            let address = Philox.Address(seed: manifest.seed, number: state.counters.microBatches, site: name)
            feeds[name] = Tensor(floats: draw(address, elementCount(shape) ?? 0), shape: shape)
        }
        return feeds
    }

    private var scaleInputs: [String: Double] {
        state.scale.active ? [Name.scale: state.scale.scale, Name.unscale: 1 / state.scale.scale] : [:]
    }

    /// Every optimizer's numbers for the next update; `fresh` are the estimates made for it.
    private func numbers(_ rate: Double, _ fresh: [Int]) -> [String: Double] {
        var numbers: [String: Double] = [:]
        for (index, scalars) in manifest.scalars.enumerated() {
            let step = Double(state.counters.steps - scalars.since + 1)
            for (name, formula) in scalars.numbers {
                numbers["optimizer/\(index)/\(name)"] = formula.value(step: step, rate: rate * scalars.lrScale)
            }
            if let estimate = scalars.estimate {
                let isFresh = fresh.contains(estimate) && isDue(scalars)
                numbers["optimizer/\(index)/hessian_fresh"] = isFresh ? 1 : 0
            }
        }
        return numbers
    }

    /// Whether the next update is one of those that this optimizer's estimate is made for.
    private func isDue(_ scalars: BundleManifest.Scalars) -> Bool {
        guard let estimate = scalars.estimate else { return false }
        return (state.counters.steps - scalars.since) % manifest.estimates[estimate].every == 0
    }

    /// Makes the estimates that the next update begins with; they go to the store.
    private func estimate(_ feeds: [String: Tensor], _ form: Int) throws(RLXError) -> [Int] {
        let due = manifest.estimates.indices.filter { index in
            manifest.scalars.contains { $0.estimate == index && isDue($0) }
        }
        for index in due {
            let program = try program(manifest.estimates[index].program, form)
            let draw = manifest.estimates[index].estimator == "hutchinson" ? Philox.signs : Philox.uniform
            try program.run(drawn(feeds, for: program, Name.probe, draw))
        }
        return due
    }
}

extension BundleManifest.Estimate {
    fileprivate var address: RunState.Window.Estimate { .init(every: every, estimator: estimator) }
}
