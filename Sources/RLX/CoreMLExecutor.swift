// Runs a program on Core ML. Weights and state have two buffers that change places after each step.

import CoreML
import Foundation
import MILRuntime

final class CoreMLExecutor: Executor {
    private let compiled: CoreMLModel
    private let binding: ProgramBinding
    /// Buffers of feeds and results.
    private let storages: [String: Storage]
    /// Core ML's view of each buffer that it may read or write.
    private var arrays: [ObjectIdentifier: MLMultiArray] = [:]
    private var runs = 0
    private var backingCopies = 0

    init(_ binding: ProgramBinding, units: ComputeUnits) throws(RLXError) {
        self.binding = binding
        var storages: [String: Storage] = [:]
        for feature in binding.feeds + binding.results { storages[feature.name] = try Storage.make(feature) }
        self.storages = storages
        compiled = try CoreMLModel(binding.program, units: units)
    }

    func buffer(named name: String) -> Storage? { storages[name] }

    var statistics: ProgramSession.Statistics {
        .init(runs: runs, instructions: 0, arenaBytes: 0, backingCopies: backingCopies)
    }

    /// Core ML reads the feed's own buffer, so the values are copied there.
    func lend(_ feed: Int, _ memory: UnsafeRawBufferPointer?) {
        if let memory { storages[binding.feeds[feed].name]?.bytes.copyMemory(from: memory) }
    }

    func lend(result: Int, _ memory: UnsafeMutableRawBufferPointer?) -> Bool { memory == nil }

    func run() throws(RLXError) {
        try checkRanges()
        do {
            try CoreMLModel.queue.sync { try callingCoreML { try predict() } }
        } catch {
            throw RLXError(coreML: error, doing: "run the program")
        }
        for name in binding.donated.keys { binding.residents[name]?.turn() }
        runs += 1
    }

    private func predict() throws {
        let targets = try outputStorages()
        let options = MLPredictionOptions()
        options.outputBackings = try backings(targets)
        try take(compiled.model.prediction(from: inputFeatures(), options: options), targets)
    }

    // MARK: Inputs

    private func inputFeatures() throws -> MLDictionaryFeatureProvider {
        var values: [String: Any] = [:]
        for feed in binding.feeds {
            if let storage = storages[feed.name] { values[feed.name] = try array(over: storage, of: feed) }
        }
        for (name, resident) in binding.residents {
            values[name] = try array(over: resident.current, of: resident.feature)
        }
        return try MLDictionaryFeatureProvider(dictionary: values)
    }

    private func checkRanges() throws(RLXError) {
        for (name, range) in binding.ranges {
            guard let storage = storages[name] ?? binding.residents[name]?.current else { continue }
            let values = storage.bytes.bindMemory(to: Int32.self)
            guard let index = values.firstIndex(where: { !range.contains($0) }) else { continue }
            throw .outOfRange(name, value: values[index], index: index, range: range)
        }
    }

    // MARK: Outputs

    /// Where each output is to end up: the spare buffer of a resident, or a result's own.
    private func outputStorages() throws -> [String: Storage] {
        var targets: [String: Storage] = [:]
        for result in binding.results { targets[result.name] = storages[result.name] }
        for (input, output) in binding.donated { targets[output] = try binding.residents[input]?.spare() }
        return targets
    }

    private func backings(_ targets: [String: Storage]) throws -> [String: Any] {
        var backings: [String: Any] = [:]
        for output in binding.program.outputs {
            if let storage = targets[output.name] { backings[output.name] = try array(over: storage, of: output) }
        }
        return backings
    }

    /// Copies what Core ML put elsewhere; its rows may be padded.
    private func take(_ outputs: any MLFeatureProvider, _ targets: [String: Storage]) throws {
        for output in binding.program.outputs {
            guard let target = targets[output.name] else { continue }
            guard let value = outputs.featureValue(for: output.name)?.multiArrayValue else {
                throw RLXError(.internal, "Core ML gave no array for '\(output.name)'", subject: output.name)
            }
            if value === arrays[ObjectIdentifier(target)] { continue }
            backingCopies += 1
            try copy(value, to: target, of: output)
        }
    }

    private func copy(_ array: MLMultiArray, to target: Storage, of output: Feature) throws {
        guard array.dataType == output.dtype.multiArray, array.count == elementCount(output.shape) else {
            throw RLXError(
                .internal, "Core ML gave '\(output.name)' as \(array.dataType) of shape \(array.shape)",
                subject: output.name)
        }
        let strides = array.strides.map { $0.intValue * output.dtype.size }
        try array.withUnsafeBytes { bytes in
            let view = try StridedBytes(
                base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), shape: array.shape.map(\.intValue),
                strides: strides, elementSize: output.dtype.size)
            target.write(view)
        }
    }

    // MARK: Arrays

    /// Core ML has no arrays of rank 0: such a feature travels as (1,).
    private func array(over storage: Storage, of feature: Feature) throws -> MLMultiArray {
        if let array = arrays[ObjectIdentifier(storage)] { return array }
        guard let base = storage.bytes.baseAddress, let type = feature.dtype.multiArray,
            let strides = cOrderStrides(feature.shape, elementSize: 1)
        else {
            throw RLXError(
                .unsupported, "Core ML takes no \(feature.dtype) of shape \(feature.shape.text) for '\(feature.name)'",
                subject: feature.name)
        }
        let array = try MLMultiArray(
            dataPointer: base, shape: (feature.shape.isEmpty ? [1] : feature.shape).map { NSNumber(value: $0) },
            dataType: type, strides: (strides.isEmpty ? [1] : strides).map { NSNumber(value: $0) },
            deallocator: { [storage] _ in withExtendedLifetime(storage) {} })
        arrays[ObjectIdentifier(storage)] = array
        return array
    }
}
