// rlx_model, rlx_state and rlx_results: predictions with any interface.

import CRLX
import MILRuntime
import RLX

final class ModelHandle: Handle {
    let model: PredictionModel
    let interface: CString

    init(_ model: PredictionModel) {
        self.model = model
        interface = CString(model.interface)
    }
}

final class StateHandle: Handle {
    let state: PredictionState

    init(_ state: PredictionState) { self.state = state }
}

final class TextHandle: Handle {
    let text: CString

    init(_ text: String) { self.text = CString(text) }
}

final class ResultsHandle: Handle {
    struct Result {
        let name: CString
        let kind: rlx_result_kind
        let label: Int
        let storage: Storage?
        let shape: CShape
    }

    let results: [Result]

    init(_ outputs: [(name: String, output: Output)]) {
        results = outputs.map { name, output in
            switch output {
            case .tensor(let storage): Self.result(name, RLX_RESULT_KIND_TENSOR, storage)
            case .probabilities(let storage): Self.result(name, RLX_RESULT_KIND_PROBABILITIES, storage)
            case .label(let label):
                Result(
                    name: CString(name), kind: RLX_RESULT_KIND_LABEL, label: label, storage: nil, shape: CShape([]))
            }
        }
    }

    private static func result(_ name: String, _ kind: rlx_result_kind, _ storage: Storage) -> Result {
        Result(name: CString(name), kind: kind, label: -1, storage: storage, shape: CShape(storage.shape))
    }
}

@c @implementation
public func rlx_model_load(
    _ path: UnsafePointer<CChar>!, _ function: UnsafePointer<CChar>!, _ options: UnsafePointer<rlx_model_options>!,
    _ out: UnsafeMutablePointer<OpaquePointer?>!, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let path = try string(path, "path")
        let function = try optionalString(function, "function")
        var threads = 0
        var seconds: Double?
        var watched: Set<String> = []
        if let options = options?.pointee {
            try checkSize(options.size, of: rlx_model_options.self, "options")
            guard options.seconds >= 0, options.seconds < 1e9 else {
                throw RLXError(.invalidArgument, "\(options.seconds) is no number of seconds", subject: "seconds")
            }
            threads = Int(options.threads)
            if options.seconds > 0 { seconds = options.seconds }
            for name in try buffer(options.watched, count: options.watched_count, "watched") {
                watched.insert(try string(name, "watched"))
            }
        }
        out.pointee = retained(
            ModelHandle(
                try PredictionModel(
                    contentsOf: path, function: function, threads: threads, seconds: seconds, watched: watched)))
    }
}

@c @implementation
public func rlx_model_interface(_ model: OpaquePointer!) -> UnsafePointer<CChar>! {
    borrowed(model, as: ModelHandle.self)?.interface.pointer
}

@c @implementation
public func rlx_model_predict(
    _ model: OpaquePointer!, _ state: OpaquePointer!, _ names: UnsafePointer<UnsafePointer<CChar>?>!,
    _ values: UnsafePointer<rlx_tensor>!, _ count: Int, _ out: UnsafeMutablePointer<OpaquePointer?>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let model: ModelHandle = try handle(model, "model")
        let state: StateHandle? = try state.map { (pointer) throws(RLXError) in try handle(pointer, "state") }
        let inputs = try inputs(names, values, count)
        out.pointee = retained(ResultsHandle(try model.model.predict(inputs, state: state?.state)))
    }
}

@c @implementation
public func rlx_model_profile(
    _ model: OpaquePointer!, _ names: UnsafePointer<UnsafePointer<CChar>?>!, _ values: UnsafePointer<rlx_tensor>!,
    _ count: Int, _ runs: Int64, _ out: UnsafeMutablePointer<OpaquePointer?>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let model: ModelHandle = try handle(model, "model")
        guard (1...1_000_000).contains(runs) else {
            throw RLXError(.invalidArgument, "\(runs) is no number of runs", subject: "runs")
        }
        let inputs = try inputs(names, values, count)
        out.pointee = retained(TextHandle(try model.model.profile(inputs, runs: Int(runs))))
    }
}

@c @implementation
public func rlx_text_get(_ text: OpaquePointer!) -> UnsafePointer<CChar>! {
    borrowed(text, as: TextHandle.self)?.text.pointer
}

@c @implementation
public func rlx_text_destroy(_ text: OpaquePointer!) { released(text) }

@c @implementation
public func rlx_model_destroy(_ model: OpaquePointer!) { released(model) }

@c @implementation
public func rlx_results_count(_ results: OpaquePointer!) -> Int64 {
    Int64(borrowed(results, as: ResultsHandle.self)?.results.count ?? 0)
}

@c @implementation
public func rlx_results_get(
    _ results: OpaquePointer!, _ index: Int64, _ out: UnsafeMutablePointer<rlx_result>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let results: ResultsHandle = try handle(results, "results")
        let out = try nonNull(out, "out")
        try checkSize(out.pointee.size, of: rlx_result.self, "out")
        guard let index = Int(exactly: index), results.results.indices.contains(index) else {
            throw RLXError(.notFound, "there is no result \(index); there are \(results.results.count)")
        }
        let result = results.results[index]
        out.pointee.name = result.name.pointer
        out.pointee.kind = Int32(result.kind.rawValue)
        out.pointee.label = Int64(result.label)
        out.pointee.value = rlx_tensor()
        out.pointee.value.size = MemoryLayout<rlx_tensor>.size
        guard let storage = result.storage else { return }
        out.pointee.value.data = storage.bytes.baseAddress
        out.pointee.value.dtype = storage.type.milCode
        out.pointee.value.rank = result.shape.rank
        out.pointee.value.shape = result.shape.pointer
    }
}

@c @implementation
public func rlx_results_destroy(_ results: OpaquePointer!) { released(results) }

@c @implementation
public func rlx_state_create(
    _ model: OpaquePointer!, _ out: UnsafeMutablePointer<OpaquePointer?>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let model: ModelHandle = try handle(model, "model")
        out.pointee = retained(StateHandle(try model.model.makeState()))
    }
}

@c @implementation
public func rlx_state_put(
    _ state: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ value: UnsafePointer<rlx_tensor>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let state: StateHandle = try handle(state, "state")
        let name = try string(name, "name")
        let (type, bytes) = try elements(value, "value")
        try state.state.put(name, type, bytes)
    }
}

@c @implementation
public func rlx_state_get(
    _ state: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ out: UnsafeMutablePointer<rlx_tensor>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let state: StateHandle = try handle(state, "state")
        let name = try string(name, "name")
        let (type, bytes) = try elements(UnsafePointer(out), "out")
        try state.state.get(name, type, into: bytes)
    }
}

@c @implementation
public func rlx_state_destroy(_ state: OpaquePointer!) { released(state) }

/// Copies of the values by name.
private func inputs(
    _ names: UnsafePointer<UnsafePointer<CChar>?>?, _ values: UnsafePointer<rlx_tensor>?, _ count: Int
) throws(RLXError) -> [String: Storage] {
    let names = try buffer(names, count: count, "names")
    let values = try buffer(values, count: count, "values")
    var inputs: [String: Storage] = [:]
    for index in 0..<count {
        let name = try string(names[index], "names")
        let (type, bytes) = try elements(values.baseAddress.map { $0 + index }, "values")
        guard inputs.updateValue(try .copying(bytes, type), forKey: name) == nil else {
            throw RLXError(.invalidArgument, "the input '\(name)' is given twice", subject: name)
        }
    }
    return inputs
}

/// The memory that an `rlx_tensor` of any type describes.
private func elements(
    _ tensor: UnsafePointer<rlx_tensor>?, _ argument: String
) throws(RLXError) -> (ElementType, StridedBytes) {
    let code = try nonNull(tensor, argument).pointee.dtype
    guard let type = ElementType(milCode: code) else {
        throw RLXError(.badDType, "\(code) is no rlx_dtype", subject: argument)
    }
    return (type, try strided(tensor, argument, elementSize: type.size))
}
