import CRLX
import Foundation
import Testing

extension BridgeTests {
    /// Arguments that no correct client gives: a status, never a crash.
    @Suite struct TotalityTests {
        @Test func nullEverywhere() {
            let null: OpaquePointer? = nil
            #expect(rlx_error_code(nil) == 0)
            #expect(String(cString: rlx_error_message(nil)).isEmpty)
            #expect(String(cString: rlx_error_detail(nil)).isEmpty)
            #expect(String(cString: rlx_error_subject(nil)).isEmpty)
            rlx_error_destroy(nil)
            rlx_program_destroy(nil)
            rlx_store_destroy(nil)
            rlx_session_destroy(nil)
            #expect(rlx_program_feature_count(nil, 0) == 0)
            rlx_placement_destroy(nil)
            #expect(rlx_placement_json(nil) == nil)
            let invalid = RLX_STATUS_INVALID_ARGUMENT
            #expect(status { rlx_program_load(nil, nil, nil, $0) } == invalid)
            #expect(status { rlx_program_load_memory(nil, 0, nil, 0, nil, nil, $0) } == invalid)
            #expect(status { rlx_program_feature(nil, 0, 0, nil, $0) } == invalid)
            #expect(status { rlx_store_create(nil, $0) } == invalid)
            #expect(status { rlx_store_put(null, nil, nil, $0) } == invalid)
            #expect(status { rlx_store_get(null, nil, nil, $0) } == invalid)
            #expect(status { rlx_session_create(nil, nil, nil, nil, $0) } == invalid)
            #expect(status { rlx_session_buffer(nil, nil, nil, $0) } == invalid)
            #expect(status { rlx_session_run(nil, $0) } == invalid)
            #expect(status { rlx_session_get_statistics(nil, nil, $0) } == invalid)
            #expect(status { rlx_session_run_feeds(nil, nil, 0, $0) } == invalid)
            #expect(status { rlx_session_run_lent(nil, nil, 0, nil, 0, $0) } == invalid)
            #expect(status { rlx_session_run_steps(nil, nil, nil, $0) } == invalid)
            #expect(rlx_session_run(nil, nil) == invalid)
            #expect(status { rlx_placement_load(nil, nil, 0, nil, $0) } == invalid)
        }

        @Test func nullInsideValidCalls() throws {
            let store = try Store()
            let program = try Program("linreg")
            let invalid = RLX_STATUS_INVALID_ARGUMENT
            var out: OpaquePointer?
            #expect(status { rlx_store_put(store.handle, "w", nil, $0) } == invalid)
            #expect(status { rlx_store_put(store.handle, nil, nil, $0) } == invalid)
            #expect(status { rlx_program_load(nil, nil, &out, $0) } == invalid)
            #expect(status { rlx_program_load_memory(nil, 8, nil, 0, nil, &out, $0) } == invalid)
            #expect(status { rlx_program_load_memory(nil, .max, nil, 0, nil, &out, $0) } == invalid)
            #expect(status { rlx_session_create(program.handle, store.handle, nil, &out, $0) } == invalid)
            var options = rlx_session_options()
            #expect(status { rlx_session_create(program.handle, store.handle, &options, &out, $0) } == invalid)
            options.size = MemoryLayout<rlx_session_options>.size
            options.pair_count = 1
            #expect(status { rlx_session_create(program.handle, store.handle, &options, &out, $0) } == invalid)
            var pair = rlx_pair()
            withUnsafePointer(to: &pair) { pairs in
                options.pairs = pairs
                #expect(status { rlx_session_create(program.handle, store.handle, &options, &out, $0) } == invalid)
                options.pair_count = -1
                #expect(status { rlx_session_create(program.handle, store.handle, &options, &out, $0) } == invalid)
            }
            options.pair_count = 0
            options.device = 77
            #expect(status { rlx_session_create(program.handle, store.handle, &options, &out, $0) } == invalid)
            options.device = 0
            options.units = -1
            #expect(status { rlx_session_create(program.handle, store.handle, &options, &out, $0) } == invalid)
            #expect(out == nil)
        }

        @Test func handlesOfAnotherKind() throws {
            let store = try Store()
            #expect(status { rlx_session_run(store.handle, $0) } == RLX_STATUS_INVALID_ARGUMENT)
            #expect(rlx_program_feature_count(store.handle, 0) == 0)
        }

        @Test func badTensors() throws {
            let store = try Store()
            var data: [Float] = [1, 2, 3, 4]
            func put(
                dtype: Int32 = 11, rank: Int32, shape: [Int64], strides: [Int64]? = nil, size: Int? = nil
            ) -> rlx_status {
                withTensor(&data, RLX_DTYPE_F32, shape: shape, strides: strides) { tensor in
                    tensor.pointee.dtype = dtype
                    tensor.pointee.rank = rank
                    tensor.pointee.size = size ?? MemoryLayout<rlx_tensor>.size
                    return status { rlx_store_put(store.handle, "w", tensor, $0) }
                }
            }
            #expect(put(dtype: 0, rank: 1, shape: [4]) == RLX_STATUS_BAD_DTYPE)
            #expect(put(dtype: -9, rank: 1, shape: [4]) == RLX_STATUS_BAD_DTYPE)
            #expect(put(rank: -1, shape: [4]) == RLX_STATUS_BAD_SHAPE)
            #expect(put(rank: .max, shape: [4]) == RLX_STATUS_BAD_SHAPE)
            #expect(put(rank: 1, shape: [-4]) == RLX_STATUS_BAD_SHAPE)
            #expect(put(rank: 2, shape: [.max, .max]) == RLX_STATUS_BAD_SHAPE)
            #expect(put(rank: 3, shape: [.max, .max, 0]) == RLX_STATUS_BAD_SHAPE)
            #expect(put(rank: 1, shape: [.max]) == RLX_STATUS_BAD_SHAPE)
            #expect(put(rank: 2, shape: [2, 2], strides: [.max, .max]) == RLX_STATUS_BAD_SHAPE)
            #expect(put(rank: 2, shape: [3, 2], strides: [.min, 4]) == RLX_STATUS_BAD_SHAPE)
            #expect(put(rank: 1, shape: [4], size: 8) == RLX_STATUS_INVALID_ARGUMENT)
            var nothing = rlx_tensor()
            nothing.size = MemoryLayout<rlx_tensor>.size
            nothing.dtype = 11
            #expect(status { rlx_store_put(store.handle, "w", &nothing, $0) } == RLX_STATUS_INVALID_ARGUMENT)
            nothing.rank = 1
            #expect(status { rlx_store_put(store.handle, "w", &nothing, $0) } == RLX_STATUS_INVALID_ARGUMENT)
        }

        @Test func hugeTensorsAreRefusedOrAllocated() throws {
            let store = try Store()
            var one: [Float] = [1]
            let broadcast = withTensor(&one, RLX_DTYPE_F32, shape: [1 << 44], strides: [0]) { tensor in
                status { rlx_store_put(store.handle, "w", tensor, $0) }
            }
            #expect(broadcast == RLX_STATUS_OUT_OF_MEMORY)
        }

        @Test func invalidUTF8() throws {
            let bytes: [CChar] = [-1, -2, 0]
            var out: OpaquePointer?
            #expect(status { rlx_program_load(bytes, nil, &out, $0) } == RLX_STATUS_INVALID_ARGUMENT)
        }

        @Test func devices() throws {
            try call { rlx_device_check(Int32(RLX_DEVICE_CPU.rawValue), $0) }
            #expect(status { rlx_device_check(9, $0) } == RLX_STATUS_INVALID_ARGUMENT)
            #if os(Linux)
            if ProcessInfo.processInfo.environment["RLX_COREML_ON_LINUX"] == nil {
                #expect(status { rlx_device_check(1, $0) } == RLX_STATUS_UNAVAILABLE)
            }
            #endif
        }

        @Test func library() {
            #expect(rlx_abi_version() == RLX_ABI_VERSION)
            #expect(String(cString: rlx_version()).split(separator: ".").count == 3)
            #expect(["avx512", "avx2", "neon", "baseline"].contains(String(cString: rlx_isa())))
        }
    }
}
