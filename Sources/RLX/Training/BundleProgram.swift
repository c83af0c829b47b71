// One program of a bundle, bound to the session's store: values in and out by the names that graphs give them.

import Foundation

/// Not for two threads at once; its session's queue sees to that.
final class BundleProgram {
    private let session: ProgramSession
    private let inputs: [String: Port]
    private let outputs: [String: Port]
    private let written: [BundleManifest.Written]
    /// By input; what an index may be besides those of a range.
    private let holed: [String: (range: Range<Int32>, besides: Set<Int32>)]
    private let store: TensorStore

    /// A feature's buffer, and the type that its value has in graphs.
    fileprivate struct Port {
        let type: BundleManifest.Port
        let feature: Feature
        let bytes: UnsafeMutableRawBufferPointer
    }

    init(
        _ name: String, form: Int, of bundle: TrainingBundle, store: TensorStore, device: Device
    ) throws(RLXError) {
        let (described, program) = try bundle.program(name, form: form)
        let ranges = described.ranges.mapValues { 0..<Int32(clamping: $0) }
        var options = ProgramSession.Options()
        options.device = device
        options.units = ComputeUnits(named: described.units)
        options.pairs = described.pairs.sorted { $0.key < $1.key }.map { .init(input: $0.key, output: $0.value) }
        options.ranges = ranges.filter { described.replaced[$0.key] == nil }
        session = try ProgramSession(program, store: store, options: options)
        self.store = store
        inputs = try Self.ports(described.inputs, session, name)
        outputs = try Self.ports(described.outputs, session, name)
        written = described.written.sorted { $0.key < $1.key }.map(\.value)
        holed = described.inputs.compactMapValues { input in
            guard let range = ranges[input.feature], let besides = described.replaced[input.feature] else { return nil }
            return (range, Set(besides))
        }
        guard session.feeds.count == inputs.count else {
            throw .badManifest("programs.\(name)", "it leaves inputs of the program without a meaning")
        }
    }

    private static func ports(
        _ described: [String: BundleManifest.Port], _ session: ProgramSession, _ name: String
    ) throws(RLXError) -> [String: Port] {
        var ports: [String: Port] = [:]
        for (value, type) in described {
            let (feature, bytes) = try session.buffer(type.feature)
            let dtype: DType = type.dtype == .bool ? .int32 : type.dtype
            guard feature.dtype == dtype, feature.shape == (type.shape.isEmpty ? [1] : type.shape) else {
                throw .badManifest("programs.\(name).\(value)", "the program has it in another type")
            }
            ports[value] = Port(type: type, feature: feature, bytes: bytes)
        }
        return ports
    }

    /// The names and shapes of the inputs.
    var inputShapes: [String: [Int]] { inputs.mapValues(\.type.shape) }

    /// Runs once. `tensors` and `numbers` may hold more than the program takes; on an error nothing has changed.
    func run(_ tensors: [String: Tensor], _ numbers: [String: Double] = [:]) throws(RLXError) {
        for (name, port) in inputs {
            if let number = numbers[name] {
                try port.check(name, dtype: .float32, shape: [])
                port.put(number)
            } else if let tensor = tensors[name] {
                try port.check(name, dtype: tensor.dtype, shape: tensor.shape)
                if let holed = holed[name] { try tensor.checkIndices(name, in: holed.range, or: holed.besides) }
                port.put(tensor)
            } else {
                throw .missingFeed(name)
            }
        }
        try session.run()
        for output in written { try store.put(output.resident, session.result(output.feature)) }
    }

    /// The outputs of rank 0 of the last run.
    func numbers() -> [String: Double] {
        outputs.compactMapValues { $0.type.shape.isEmpty ? $0.number : nil }
    }

    /// All outputs of the last run.
    func tensors() -> [String: Tensor] { outputs.mapValues(\.tensor) }
}

extension BundleProgram.Port {
    func check(_ name: String, dtype: DType, shape: [Int]) throws(RLXError) {
        guard dtype == type.dtype else { throw .dtypeMismatch(name, expected: type.dtype, got: dtype) }
        guard shape == type.shape else { throw .shapeMismatch(name, expected: type.shape, got: shape) }
    }

    /// The port is f32 of rank 0.
    func put(_ number: Double) {
        bytes.storeBytes(of: Float(number), as: Float.self)
    }

    /// The tensor has the port's type. Booleans travel as i32.
    func put(_ tensor: Tensor) {
        guard type.dtype == .bool else { return tensor.bytes.withUnsafeBytes { bytes.copyMemory(from: $0) } }
        let target = bytes.bindMemory(to: Int32.self)
        for (i, byte) in tensor.bytes.enumerated() { target[i] = byte == 0 ? 0 : 1 }
    }

    var tensor: Tensor {
        guard type.dtype == .bool else { return Tensor(copying: bytes, dtype: type.dtype, shape: type.shape) }
        let values = bytes.bindMemory(to: Int32.self)
        return Tensor(bytes: values.map { $0 == 0 ? 0 : 1 }, dtype: .bool, shape: type.shape)
    }

    /// The only element of a value of rank 0.
    var number: Double {
        switch feature.dtype {
        case .float32: Double(bytes.load(as: Float.self))
        case .int32: Double(bytes.load(as: Int32.self))
        case .float16: Double(half: bytes.load(as: UInt16.self))
        case .bool: bytes.load(as: UInt8.self) == 0 ? 0 : 1
        }
    }
}

extension Tensor {
    fileprivate func checkIndices(
        _ name: String, in range: Range<Int32>, or besides: Set<Int32>
    ) throws(RLXError) {
        for (index, value) in try scalars(as: Int32.self).enumerated()
        where !range.contains(value) && !besides.contains(value) {
            throw .outOfRange(name, value: value, index: index, range: range, besides: besides)
        }
    }
}

extension Double {
    /// The value of an IEEE half; x86-64 on macOS has no type for it.
    init(half bits: UInt16) {
        let (exponent, fraction) = (Int(bits >> 10) & 31, Double(bits & 1023))
        let magnitude: Double =
            switch exponent {
            case 0: fraction * 0x1p-24
            case 31: fraction == 0 ? .infinity : .nan
            default: scalbn(1 + fraction / 1024, exponent - 15)
            }
        self = bits >> 15 == 0 ? magnitude : -magnitude
    }
}

extension ComputeUnits {
    /// As the Python side calls them; all for a name that it does not have.
    init(named name: String) {
        let names: [String: ComputeUnits] = [
            "cpu": .cpuOnly, "cpu_and_gpu": .cpuAndGPU, "cpu_and_ne": .cpuAndNeuralEngine,
        ]
        self = names[name] ?? .all
    }
}
