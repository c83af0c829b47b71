// rlx_update: the result of one update task.

import CRLX
import Foundation
import RLX

final class UpdateHandle: Handle {
    let update: NetworkUpdate

    init(_ update: NetworkUpdate) { self.update = update }
}

@c @implementation
public func rlx_update_run(
    _ model: UnsafeRawPointer!, _ modelSize: Int, _ columns: UnsafePointer<rlx_column>!, _ columnCount: Int,
    _ options: UnsafePointer<rlx_update_options>!, _ out: UnsafeMutablePointer<OpaquePointer?>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let bytes = try buffer(model?.assumingMemoryBound(to: UInt8.self), count: modelSize, "model")
        var data: [String: Tensor] = [:]
        for column in try buffer(columns, count: columnCount, "columns") {
            let name = try string(column.name, "columns.name")
            let (dtype, values) = try view(column.value, "columns.value")
            data[name] = Tensor(copying: values, dtype: dtype)
        }
        let given = try nonNull(options, "options").pointee
        let update = try NetworkUpdate.run(
            model: Data(bytes), data: data, options: NetworkUpdateOptions(given), progress: given.goesOn)
        out.pointee = retained(UpdateHandle(update))
    }
}

extension rlx_update_options {
    /// The flag is not read any more once the call has returned: a task that was ended asks nothing.
    fileprivate var goesOn: (@Sendable (Double) -> Bool)? {
        guard let stop else { return nil }
        nonisolated(unsafe) let flag = stop
        return { _ in flag.pointee == 0 }
    }
}

extension NetworkUpdateOptions {
    fileprivate init(_ options: rlx_update_options) throws(RLXError) {
        try checkSize(options.size, of: rlx_update_options.self, "options")
        self.init()
        if options.epochs > 0 { epochs = Int(options.epochs) }
        if options.mini_batch > 0 { miniBatchSize = Int(options.mini_batch) }
        shuffle = options.shuffle != 0
        if options.shuffle != 0 { seed = Int(options.seed) }
    }
}

@c @implementation
public func rlx_update_loss_count(_ update: OpaquePointer!) -> Int64 {
    Int64(borrowed(update, as: UpdateHandle.self)?.update.losses.count ?? 0)
}

@c @implementation
public func rlx_update_get_losses(
    _ update: OpaquePointer!, _ out: UnsafeMutablePointer<Double>!, _ count: Int64,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let update: UpdateHandle = try handle(update, "update")
        let losses = update.update.losses
        guard count == Int64(losses.count) else {
            throw RLXError(.badShape, "there are \(losses.count) losses, not \(count)", subject: "out")
        }
        if !losses.isEmpty { try nonNull(out, "out").update(from: losses, count: losses.count) }
    }
}

@c @implementation
public func rlx_update_get_parameter(
    _ update: OpaquePointer!, _ layer: UnsafePointer<CChar>!, _ kind: Int32, _ out: UnsafeMutablePointer<rlx_tensor>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let update: UpdateHandle = try handle(update, "update")
        guard let kind = NetworkUpdate.Parameter(rawValue: kind) else { throw .unknown("rlx_parameter", kind) }
        let layer = try string(layer, "layer")
        let (dtype, target) = try view(out, "out")
        try update.update.parameter(layer, kind).copy(to: target, dtype: dtype, name: layer)
    }
}

@c @implementation
public func rlx_update_destroy(_ update: OpaquePointer!) { released(update) }
