// Models and results at the C boundary.
import CRLX
import Foundation
import Testing

extension BridgeTests {
    /// rlx_model and rlx_results as a client in C uses them.
    @Suite struct ModelTests {
        @Test func predicts() throws {
            let model = try LoadedModel("linreg")
            let interface = String(cString: rlx_model_interface(model.handle))
            #expect(interface.contains("\"inputs\"") && interface.contains("\"name\":\"target\""))
            let all = try model.predict(LinearRegression.feeds)
            #expect(all.keys.sorted() == ["W_next", "loss", "prediction"])
            #expect(abs((all["loss"]?.first ?? .nan) - LinearRegression.firstLoss) < 1e-4)
        }

        @Test func givesWhatIsWatched() throws {
            let model = try LoadedModel("control", watched: ["reduce_sum_0"])
            let all = try model.predict(["x": ([1, 2, 3], [3])], integers: ["n": 2])
            #expect(all["reduce_sum_0"] == [24])
            #expect(all["y"] != nil)
        }

        @Test func profiles() throws {
            let model = try LoadedModel("linreg")
            let text = try model.profile(LinearRegression.feeds)
            let said = try #require(
                JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            let steps = try #require(said["steps"] as? [[String: Any]])
            #expect(!steps.isEmpty && steps.allSatisfy { ($0["calls"] as? Int) == 1 })
            #expect((said["nanoseconds"] as? Double ?? 0) > 0)
        }

        @Test func refusesWhatMakesNoSense() throws {
            let invalid = RLX_STATUS_INVALID_ARGUMENT
            var out: OpaquePointer?
            #expect(status { rlx_model_load(nil, nil, nil, &out, $0) } == invalid)
            #expect(status { rlx_model_load(Fixture.path("linreg"), nil, nil, nil, $0) } == invalid)
            #expect(status { rlx_model_load(Fixture.path("linreg"), "other", nil, &out, $0) } == RLX_STATUS_NOT_FOUND)
            #expect(status { rlx_model_load(Fixture.path("nothing"), nil, nil, &out, $0) } == RLX_STATUS_IO)
            var options = rlx_model_options()
            #expect(status { rlx_model_load(Fixture.path("linreg"), nil, &options, &out, $0) } == invalid)
            options.size = MemoryLayout<rlx_model_options>.size
            for seconds in [-1, .nan, .infinity] {
                options.seconds = seconds
                #expect(status { rlx_model_load(Fixture.path("linreg"), nil, &options, &out, $0) } == invalid)
            }
            options.seconds = 0
            options.watched_count = 1
            #expect(status { rlx_model_load(Fixture.path("linreg"), nil, &options, &out, $0) } == invalid)
            #expect(out == nil)
            #expect(throws: Failure.self) { try LoadedModel("linreg", watched: ["nothing"]) }
            let model = try LoadedModel("linreg")
            #expect(status { rlx_model_predict(model.handle, nil, nil, nil, 1, &out, $0) } == invalid)
            #expect(status { rlx_model_predict(nil, nil, nil, nil, 0, &out, $0) } == invalid)
            #expect(status { rlx_model_predict(model.handle, nil, nil, nil, 0, &out, $0) } == invalid)
            #expect(status { rlx_model_profile(model.handle, nil, nil, 0, 0, &out, $0) } == invalid)
            #expect(status { rlx_results_get(model.handle, 0, nil, $0) } == invalid)
            #expect(rlx_results_count(model.handle) == 0 && rlx_text_get(model.handle) == nil)
            #expect(out == nil)
            rlx_model_destroy(nil)
            rlx_state_destroy(nil)
            rlx_results_destroy(nil)
            rlx_text_destroy(nil)
        }
    }
}

extension LinearRegression {
    fileprivate static var feeds: [String: (values: [Float], shape: [Int64])] {
        ["x": (x, [8, 3]), "target": (target, [8, 1]), "W": ([0, 0, 0], [3, 1]), "lr": ([0.1], [1])]
    }
}

/// A model that gives itself back.
private final class LoadedModel {
    let handle: OpaquePointer

    init(_ name: String, watched: [String] = []) throws {
        let names = watched.map { strdup($0) }
        defer { for name in names { free(name) } }
        var handle: OpaquePointer?
        try names.map { UnsafePointer($0) }.withUnsafeBufferPointer { names in
            var options = rlx_model_options()
            options.size = MemoryLayout<rlx_model_options>.size
            options.watched = names.baseAddress
            options.watched_count = names.count
            try call { rlx_model_load(Fixture.path(name), nil, &options, &handle, $0) }
        }
        self.handle = try #require(handle)
    }

    deinit { rlx_model_destroy(handle) }

    /// The f32 results by name.
    func predict(
        _ feeds: [String: (values: [Float], shape: [Int64])], integers: [String: Int32] = [:]
    ) throws -> [String: [Float]] {
        var results: OpaquePointer?
        try withFeeds(feeds, integers) { names, values, count in
            try call { rlx_model_predict(handle, nil, names, values, count, &results, $0) }
        }
        defer { rlx_results_destroy(results) }
        var all: [String: [Float]] = [:]
        for index in 0..<rlx_results_count(results) {
            var result = rlx_result()
            result.size = MemoryLayout<rlx_result>.size
            try call { rlx_results_get(results, index, &result, $0) }
            guard result.kind == Int32(RLX_RESULT_KIND_TENSOR.rawValue),
                result.value.dtype == Int32(RLX_DTYPE_F32.rawValue)
            else { continue }
            let count = (0..<Int(result.value.rank)).reduce(1) { $0 * Int(result.value.shape[$1]) }
            let floats = result.value.data.assumingMemoryBound(to: Float.self)
            all[String(cString: result.name)] = Array(UnsafeBufferPointer(start: floats, count: count))
        }
        return all
    }

    func profile(_ feeds: [String: (values: [Float], shape: [Int64])]) throws -> String {
        var text: OpaquePointer?
        try withFeeds(feeds, [:]) { names, values, count in
            try call { rlx_model_profile(handle, names, values, count, 2, &text, $0) }
        }
        defer { rlx_text_destroy(text) }
        return String(cString: rlx_text_get(text))
    }

    private func withFeeds(
        _ feeds: [String: (values: [Float], shape: [Int64])], _ integers: [String: Int32],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<rlx_tensor>?, Int) throws -> Void
    ) throws {
        var names: [UnsafePointer<CChar>?] = []
        var tensors: [rlx_tensor] = []
        var owned: [UnsafeMutableRawPointer] = []
        defer { for memory in owned { free(memory) } }
        func copy<T>(_ values: [T]) -> UnsafeMutableRawPointer {
            let memory = malloc(max(values.count * MemoryLayout<T>.stride, 1))!
            _ = values.withUnsafeBytes { memcpy(memory, $0.baseAddress!, $0.count) }
            owned.append(memory)
            return memory
        }
        func add<T>(_ name: String, _ values: [T], _ dtype: rlx_dtype, _ shape: [Int64]) {
            names.append(UnsafePointer(copy(Array(name.utf8CString)).assumingMemoryBound(to: CChar.self)))
            tensors.append(
                rlx_tensor(
                    size: MemoryLayout<rlx_tensor>.size, data: copy(values), dtype: Int32(dtype.rawValue),
                    rank: Int32(shape.count), shape: copy(shape).assumingMemoryBound(to: Int64.self), strides: nil))
        }
        for (name, feed) in feeds { add(name, feed.values, RLX_DTYPE_F32, feed.shape) }
        for (name, value) in integers { add(name, [value], RLX_DTYPE_I32, [1]) }
        try body(names, tensors, names.count)
    }
}
