// A client of rlx.h as C would write it, with just enough Swift around it to read well.
import CRLX
import Foundation
import RLXBridge
import Testing

struct Failure: Error, Equatable {
    let code: rlx_status
    let message: String
    let subject: String
}

/// Calls a C function that can fail; its error becomes a `Failure`.
func call(_ body: (UnsafeMutablePointer<OpaquePointer?>) -> rlx_status) throws {
    var error: OpaquePointer?
    let status = body(&error)
    guard status != RLX_STATUS_OK else {
        #expect(error == nil)
        return
    }
    defer { rlx_error_destroy(error) }
    #expect(rlx_error_code(error) == Int32(status.rawValue))
    throw Failure(
        code: status, message: String(cString: rlx_error_message(error)),
        subject: String(cString: rlx_error_subject(error)))
}

/// The status that a call fails with.
func status(_ body: (UnsafeMutablePointer<OpaquePointer?>) -> rlx_status) -> rlx_status {
    do {
        try call(body)
        return RLX_STATUS_OK
    } catch let failure as Failure {
        #expect(!failure.message.isEmpty)
        return failure.code
    } catch {
        return RLX_STATUS_INTERNAL
    }
}

/// Calls the body with a tensor over the array's own memory.
func withTensor<T, R>(
    _ values: inout [T], _ dtype: rlx_dtype, shape: [Int64], strides: [Int64]? = nil, offset: Int = 0,
    _ body: (UnsafeMutablePointer<rlx_tensor>) throws -> R
) rethrows -> R {
    try values.withUnsafeMutableBytes { memory in
        try shape.withUnsafeBufferPointer { shape in
            func run(_ strides: UnsafePointer<Int64>?) throws -> R {
                var tensor = rlx_tensor(
                    size: MemoryLayout<rlx_tensor>.size, data: memory.baseAddress.map { $0 + offset },
                    dtype: Int32(dtype.rawValue), rank: Int32(shape.count), shape: shape.baseAddress,
                    strides: strides)
                return try body(&tensor)
            }
            guard let strides else { return try run(nil) }
            return try strides.withUnsafeBufferPointer { try run($0.baseAddress) }
        }
    }
}

enum Fixture {
    static func path(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("MILFormatTests/Fixtures/\(name).mlpackage").path
    }

    static func model(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path(name) + "/Data/com.apple.CoreML/model.mlmodel")))
    }
}

/// A store that gives itself back.
final class Store {
    let handle: OpaquePointer

    init() throws {
        var handle: OpaquePointer?
        try call { rlx_store_create(&handle, $0) }
        self.handle = try #require(handle)
    }

    deinit { rlx_store_destroy(handle) }

    func put<T>(_ name: String, _ values: [T], _ dtype: rlx_dtype = RLX_DTYPE_F32, shape: [Int64]) throws {
        var values = values
        try withTensor(&values, dtype, shape: shape) { tensor in
            try call { rlx_store_put(handle, name, tensor, $0) }
        }
    }

    func get(_ name: String, shape: [Int64]) throws -> [Float] {
        var values = [Float](repeating: .nan, count: Int(shape.reduce(1, *)))
        try withTensor(&values, RLX_DTYPE_F32, shape: shape) { tensor in
            try call { rlx_store_get(handle, name, tensor, $0) }
        }
        return values
    }
}

final class Program {
    let handle: OpaquePointer

    init(_ name: String) throws {
        var handle: OpaquePointer?
        try call { rlx_program_load(Fixture.path(name), nil, &handle, $0) }
        self.handle = try #require(handle)
    }

    init(memory name: String) throws {
        let model = try Fixture.model(name)
        var handle: OpaquePointer?
        try call { rlx_program_load_memory(model, model.count, nil, 0, nil, &handle, $0) }
        self.handle = try #require(handle)
    }

    deinit { rlx_program_destroy(handle) }

    func features(_ kind: rlx_feature_kind) throws -> [String] {
        let kind = Int32(kind.rawValue)
        return try (0..<rlx_program_feature_count(handle, kind)).map { index in
            var feature = rlx_feature()
            feature.size = MemoryLayout<rlx_feature>.size
            try call { rlx_program_feature(handle, kind, index, &feature, $0) }
            let shape = (0..<Int(feature.rank)).map { feature.shape[$0] }
            return "\(String(cString: feature.name)) \(feature.dtype) \(shape)"
        }
    }
}
