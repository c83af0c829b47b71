// States of models at the C boundary.
import CRLX
import Testing

extension BridgeTests {
    /// rlx_state as a client in C uses it.
    @Suite struct StateTests {
        @Test func keepsWhatIsWritten() throws {
            let state = try ModelState(of: "state")
            #expect(try state.get() == [0, 0, 0, 0])
            try state.put([0x3C00, 0x4000, 0x4200, 0x4400])
            #expect(try state.get() == [0x3C00, 0x4000, 0x4200, 0x4400])
        }

        @Test func refusesWhatDoesNotFit() throws {
            let state = try ModelState(of: "state")
            var halves: [UInt16] = [1, 2, 3, 4]
            func refused(_ name: String?, _ dtype: rlx_dtype, _ shape: [Int64]) -> [rlx_status] {
                withTensor(&halves, dtype, shape: shape) { tensor in
                    [
                        status { rlx_state_put(state.handle, name, tensor, $0) },
                        status { rlx_state_get(state.handle, name, tensor, $0) },
                    ]
                }
            }
            #expect(refused("nothing", RLX_DTYPE_F16, [1, 4]) == [RLX_STATUS_NOT_FOUND, RLX_STATUS_NOT_FOUND])
            #expect(refused("total", RLX_DTYPE_F16, [4]) == [RLX_STATUS_BAD_SHAPE, RLX_STATUS_BAD_SHAPE])
            #expect(refused("total", RLX_DTYPE_I16, [1, 4]) == [RLX_STATUS_BAD_DTYPE, RLX_STATUS_BAD_DTYPE])
            let invalid = RLX_STATUS_INVALID_ARGUMENT
            #expect(refused(nil, RLX_DTYPE_F16, [1, 4]) == [invalid, invalid])
            #expect(status { rlx_state_put(state.handle, "total", nil, $0) } == invalid)
            #expect(status { rlx_state_get(nil, "total", nil, $0) } == invalid)
            #expect(status { rlx_state_create(nil, nil, $0) } == invalid)
            #expect(try state.get() == [0, 0, 0, 0])
        }
    }
}

/// The state of a model that is given back at once.
private final class ModelState {
    let handle: OpaquePointer

    init(of name: String) throws {
        var model: OpaquePointer?
        try call { rlx_model_load(Fixture.path(name), nil, nil, &model, $0) }
        defer { rlx_model_destroy(model) }
        var handle: OpaquePointer?
        try call { rlx_state_create(model, &handle, $0) }
        self.handle = try #require(handle)
    }

    deinit { rlx_state_destroy(handle) }

    func put(_ value: [UInt16]) throws {
        var value = value
        try withTensor(&value, RLX_DTYPE_F16, shape: [1, 4]) { tensor in
            try call { rlx_state_put(handle, "total", tensor, $0) }
        }
    }

    func get() throws -> [UInt16] {
        var value: [UInt16] = [1, 1, 1, 1]
        try withTensor(&value, RLX_DTYPE_F16, shape: [1, 4]) { tensor in
            try call { rlx_state_get(handle, "total", tensor, $0) }
        }
        return value
    }
}
