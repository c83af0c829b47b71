// A run's values by name, and the run as a checkpoint and back.

extension TrainingRun {
    private var manifest: BundleManifest { bundle.manifest }

    // MARK: By name

    /// A param's or buffer's place in the store.
    private func resident(_ name: String) throws(RLXError) -> BundleManifest.Resident {
        if let param = manifest.params[name] { return .init(feature: param.feature, shape: param.shape) }
        if let buffer = manifest.buffers[name] { return .init(feature: buffer.feature, shape: buffer.shape) }
        let known = [String](manifest.params.keys) + [String](manifest.buffers.keys)
        throw .noSuchValue(name, "param or buffer", among: known)
    }

    func value(_ name: String) throws(RLXError) -> Tensor { try get(try resident(name)) }

    /// All or none.
    func put(_ values: [String: Tensor]) throws(RLXError) {
        for (name, value) in values {
            try Feature(name: name, dtype: .float32, shape: resident(name).shape)
                .check(dtype: value.dtype, shape: value.shape)
        }
        for (name, value) in values { try put(name, value) }
    }

    func put(_ name: String, _ value: Tensor) throws(RLXError) {
        try store.put(resident(name).feature, value.atBoundary)
    }

    /// What is kept for one trained param under a prefix such as "state/", by what follows its name.
    func kept(_ prefix: String, for param: String) throws(RLXError) -> [String: Tensor] {
        let trained = manifest.params.filter(\.value.trained)
        guard trained[param] != nil else { throw .noSuchValue(param, "trained param", among: trained.keys) }
        var values: [String: Tensor] = [:]
        let start = "\(prefix)\(param)/"
        for (key, place) in manifest.state where key.hasPrefix(start) {
            let slot = String(key.dropFirst(start.count))
            if !slot.contains("/") { values[slot] = try get(place) }
        }
        return values
    }

    func averages() throws(RLXError) -> [String: Tensor] {
        var values: [String: Tensor] = [:]
        for (key, place) in manifest.state where key.hasPrefix("ema/") {
            values[String(key.dropFirst(4))] = try get(place)
        }
        return values
    }

    private func get(_ place: BundleManifest.Resident) throws(RLXError) -> Tensor {
        try store.get(place.feature).reshaped(place.shape)
    }

    // MARK: Checkpoints

    /// Where each value of a checkpoint lives, by its name there.
    private func places(withWindow: Bool) -> [String: BundleManifest.Resident] {
        var places = manifest.state
        for (name, param) in manifest.params {
            places["param/\(name)"] = .init(feature: param.feature, shape: param.shape)
        }
        for (name, buffer) in manifest.buffers {
            places["buffer/\(name)"] = .init(feature: buffer.feature, shape: buffer.shape)
        }
        if withWindow { places.merge(manifest.accumulators) { $1 } }
        return places
    }

    func captured() throws(RLXError) -> SafeTensors {
        var tensors = carried
        for (name, place) in places(withWindow: settings.state.window.count > 0) { tensors[name] = try get(place) }
        for (name, value) in windowBuffers { tensors["window/\(name)"] = value }
        let kernel = "cpu \(RLXLibrary.instructionSet)"
        return SafeTensors(tensors: tensors, metadata: try settings.metadata(kernel: kernel))
    }

    /// Becomes the run of a checkpoint, all or nothing.
    func take(_ file: SafeTensors, _ settings: RunSettings, subject: String) throws(RLXError) {
        let places = places(withWindow: settings.state.window.count > 0)
        for (name, place) in places {
            guard let tensor = file.tensors[name] else { throw .badCheckpoint(subject, "'\(name)' is missing") }
            guard tensor.dtype == .float32, tensor.shape == place.shape else {
                throw .badCheckpoint(
                    subject, "'\(name)' is \(tensor.dtype) of shape \(tensor.shape.text), not f32 \(place.shape.text)")
            }
        }
        var (others, buffers): ([String: Tensor], [String: Tensor]) = ([:], [:])
        for (name, tensor) in file.tensors where places[name] == nil {
            if name.hasPrefix("window/") {
                buffers[String(name.dropFirst(7))] = tensor
            } else if manifest.accumulators[name] == nil {
                others[name] = tensor
            }
        }
        for (name, value) in buffers {
            guard manifest.buffers[name]?.shape == value.shape, value.dtype == .float32 else {
                throw .badCheckpoint(subject, "'window/\(name)' is no buffer of the run")
            }
        }
        for (name, place) in places {
            if let tensor = file.tensors[name] { try store.put(place.feature, tensor.atBoundary) }
        }
        (carried, windowBuffers, self.settings) = (others, buffers, settings)
    }
}

extension Tensor {
    /// Rank 0 travels as one element.
    var atBoundary: Tensor { shape.isEmpty ? reshaped([1]) : self }

    /// The same elements; the shape has as many.
    func reshaped(_ shape: [Int]) -> Tensor { Tensor(bytes: bytes, dtype: dtype, shape: shape) }

    /// The shape has as many elements.
    init(floats: [Float], shape: [Int]) {
        self.init(bytes: floats.withUnsafeBytes { [UInt8]($0) }, dtype: .float32, shape: shape)
    }

    /// Of a shape that was checked.
    static func zeros(_ shape: [Int]) -> Tensor {
        Tensor(bytes: [UInt8](repeating: 0, count: (elementCount(shape) ?? 0) * 4), dtype: .float32, shape: shape)
    }
}
