import CRLX
import Testing

extension BridgeTests {
    /// Tensors into the store and out again, through every kind of stride.
    @Suite struct StoreTests {
        @Test func roundTrip() throws {
            let store = try Store()
            try store.put("w", (0..<6).map(Float.init), shape: [2, 3])
            #expect(try store.get("w", shape: [2, 3]) == [0, 1, 2, 3, 4, 5])
            try store.put("w", [Float](repeating: -1, count: 6), shape: [2, 3])
            #expect(try store.get("w", shape: [2, 3]) == [-1, -1, -1, -1, -1, -1])
        }

        @Test(
            arguments: [
                ([2, 3], [4, 8], 0, [0, 2, 4, 1, 3, 5]),  // transposed
                ([2, 3], [0, 4], 0, [0, 1, 2, 0, 1, 2]),  // broadcast
                ([2, 3], [-12, -4], 20, [5, 4, 3, 2, 1, 0]),  // reversed
                ([2, 2], [12, 8], 0, [0, 2, 3, 5]),  // every other column
                ([3], [0], 8, [2, 2, 2]),
                ([1, 1, 2], [1 << 40, -(1 << 40), 20], 0, [0, 5]),  // strides of size-1 axes do not matter
                ([], [], 12, [3]),
            ] as [([Int64], [Int64], Int, [Float])])
        func strides(_ shape: [Int64], _ strides: [Int64], _ offset: Int, _ expected: [Float]) throws {
            let store = try Store()
            var source = (0..<6).map(Float.init)
            try withTensor(&source, RLX_DTYPE_F32, shape: shape, strides: strides, offset: offset) { tensor in
                try call { rlx_store_put(store.handle, "w", tensor, $0) }
            }
            #expect(try store.get("w", shape: shape) == expected)
        }

        @Test func stridedOut() throws {
            let store = try Store()
            try store.put("w", (0..<6).map(Float.init), shape: [2, 3])
            var target = [Float](repeating: -1, count: 8)
            try withTensor(&target, RLX_DTYPE_F32, shape: [2, 3], strides: [16, 4]) { tensor in
                try call { rlx_store_get(store.handle, "w", tensor, $0) }
            }
            #expect(target == [0, 1, 2, -1, 3, 4, 5, -1])
        }

        @Test func everyDtype() throws {
            let store = try Store()
            try store.put("i", [Int32.min, 7], RLX_DTYPE_I32, shape: [2])
            try store.put("h", [UInt16(0x3C00)], RLX_DTYPE_F16, shape: [])
            try store.put("b", [true, false, true], RLX_DTYPE_BOOL, shape: [3])
            var flags = [false, false, false]
            try withTensor(&flags, RLX_DTYPE_BOOL, shape: [3], strides: [-1], offset: 2) { tensor in
                try call { rlx_store_get(store.handle, "b", tensor, $0) }
            }
            #expect(flags == [true, false, true])
            #expect(throws: Failure.self) { try store.get("i", shape: [2]) }
        }

        @Test func emptyTensors() throws {
            let store = try Store()
            try store.put("none", [Float](), shape: [0, 3])
            #expect(try store.get("none", shape: [0, 3]) == [])
        }

        @Test func mistakes() throws {
            let store = try Store()
            try store.put("w", [Float](repeating: 1, count: 6), shape: [2, 3])
            #expect {
                try store.put("w", [Float](repeating: 1, count: 6), shape: [3, 2])
            } throws: { error in
                error as? Failure
                    == Failure(code: RLX_STATUS_BAD_SHAPE, message: "'w' has shape (2, 3), not (3, 2)", subject: "w")
            }
            #expect {
                try store.put("w", [Int32](repeating: 1, count: 6), RLX_DTYPE_I32, shape: [2, 3])
            } throws: { error in
                error as? Failure == Failure(code: RLX_STATUS_BAD_DTYPE, message: "'w' is f32, not i32", subject: "w")
            }
            #expect {
                try store.get("v", shape: [1])
            } throws: { ($0 as? Failure)?.code == RLX_STATUS_NOT_FOUND }
            #expect(try store.get("w", shape: [2, 3]) == [1, 1, 1, 1, 1, 1])
        }
    }
}
