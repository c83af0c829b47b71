// rlx_program: a loaded package.

import CRLX
import RLX

final class ProgramHandle: Handle {
    let program: LoadedProgram
    let inputs: [CFeature]
    let outputs: [CFeature]

    init(_ program: LoadedProgram) {
        self.program = program
        inputs = program.inputs.map(CFeature.init)
        outputs = program.outputs.map(CFeature.init)
    }

    func features(_ kind: Int32) -> [CFeature]? {
        switch kind {
        case Int32(RLX_FEATURE_KIND_INPUT.rawValue): inputs
        case Int32(RLX_FEATURE_KIND_OUTPUT.rawValue): outputs
        default: nil
        }
    }
}

/// A feature in C's terms.
final class CFeature {
    let name: CString
    let dtype: Int32
    let shape: CShape

    init(_ feature: Feature) {
        name = CString(feature.name)
        dtype = feature.dtype.rawValue
        shape = CShape(feature.shape)
    }
}

@c @implementation
public func rlx_program_load(
    _ path: UnsafePointer<CChar>!, _ function: UnsafePointer<CChar>!,
    _ out: UnsafeMutablePointer<OpaquePointer?>!, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let path = try string(path, "path")
        let function = try optionalString(function, "function")
        out.pointee = retained(ProgramHandle(try LoadedProgram(contentsOf: path, function: function)))
    }
}

@c @implementation
public func rlx_program_load_memory(
    _ model: UnsafeRawPointer!, _ modelSize: Int, _ weights: UnsafeRawPointer!, _ weightsSize: Int,
    _ function: UnsafePointer<CChar>!, _ out: UnsafeMutablePointer<OpaquePointer?>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let model = UnsafeRawBufferPointer(
            try buffer(model?.assumingMemoryBound(to: UInt8.self), count: modelSize, "model"))
        let weightBytes = UnsafeRawBufferPointer(
            try buffer(weights?.assumingMemoryBound(to: UInt8.self), count: weightsSize, "weights"))
        let program = try LoadedProgram(
            model: model, weights: weights == nil ? nil : weightBytes,
            function: try optionalString(function, "function"))
        out.pointee = retained(ProgramHandle(program))
    }
}

@c @implementation
public func rlx_program_feature_count(_ program: OpaquePointer!, _ kind: Int32) -> Int64 {
    Int64(borrowed(program, as: ProgramHandle.self)?.features(kind)?.count ?? 0)
}

@c @implementation
public func rlx_program_feature(
    _ program: OpaquePointer!, _ kind: Int32, _ index: Int64, _ out: UnsafeMutablePointer<rlx_feature>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let program: ProgramHandle = try handle(program, "program")
        let out = try nonNull(out, "out")
        try checkSize(out.pointee.size, of: rlx_feature.self, "out")
        guard let features = program.features(kind) else { throw .unknown("rlx_feature_kind", kind) }
        guard let index = Int(exactly: index), features.indices.contains(index) else {
            throw RLXError(.notFound, "there is no feature \(index); there are \(features.count)")
        }
        let feature = features[index]
        out.pointee.name = feature.name.pointer
        out.pointee.dtype = feature.dtype
        out.pointee.rank = feature.shape.rank
        out.pointee.shape = feature.shape.pointer
    }
}

@c @implementation
public func rlx_program_destroy(_ program: OpaquePointer!) { released(program) }
