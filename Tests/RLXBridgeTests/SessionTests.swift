import CRLX
import Foundation
import Testing

/// A session that gives itself back.
final class Session {
    let handle: OpaquePointer

    init(
        _ program: Program, _ store: Store, pairs: [(String, String)] = [], ranges: [(String, Int32, Int32)] = [],
        device: rlx_device = RLX_DEVICE_CPU
    ) throws {
        var strings: [UnsafeMutablePointer<CChar>] = []
        defer { for string in strings { string.deallocate() } }
        func c(_ string: String) -> UnsafePointer<CChar> {
            let characters = Array(string.utf8CString)
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: characters.count)
            copy.initialize(from: characters, count: characters.count)
            strings.append(copy)
            return UnsafePointer(copy)
        }
        let cPairs = pairs.map { rlx_pair(input: c($0.0), output: c($0.1)) }
        let cRanges = ranges.map { rlx_range(input: c($0.0), low: $0.1, high: $0.2) }
        var handle: OpaquePointer?
        try cPairs.withUnsafeBufferPointer { cPairs in
            try cRanges.withUnsafeBufferPointer { cRanges in
                var options = rlx_session_options()
                options.size = MemoryLayout<rlx_session_options>.size
                options.pairs = cPairs.baseAddress
                options.pair_count = cPairs.count
                options.ranges = cRanges.baseAddress
                options.range_count = cRanges.count
                options.device = Int32(device.rawValue)
                try call { rlx_session_create(program.handle, store.handle, &options, &handle, $0) }
            }
        }
        self.handle = try #require(handle)
    }

    deinit { rlx_session_destroy(handle) }

    func buffer(_ name: String) throws -> UnsafeMutableBufferPointer<Float> {
        var tensor = rlx_tensor()
        tensor.size = MemoryLayout<rlx_tensor>.size
        try call { rlx_session_buffer(handle, name, &tensor, $0) }
        #expect(tensor.dtype == 11)
        #expect(tensor.strides == nil)
        let count = (0..<Int(tensor.rank)).reduce(1) { $0 * Int(tensor.shape[$1]) }
        return UnsafeMutableBufferPointer(start: tensor.data?.assumingMemoryBound(to: Float.self), count: count)
    }

    func feed(_ name: String, _ values: [Float]) throws {
        let buffer = try buffer(name)
        #expect(buffer.count == values.count)
        _ = buffer.update(from: values)
    }

    func run() throws { try call { rlx_session_run(handle, $0) } }

    func run(lending feeds: [rlx_feed]) throws { try call { rlx_session_run_feeds(handle, feeds, feeds.count, $0) } }

    func statistics() throws -> rlx_session_statistics {
        var statistics = rlx_session_statistics()
        statistics.size = MemoryLayout<rlx_session_statistics>.size
        try call { rlx_session_get_statistics(handle, &statistics, $0) }
        return statistics
    }
}

extension BridgeTests {
    @Suite struct SessionTests {
        private let pairs = [("W", "W_next")]

        @Test func linearRegression() throws {
            let store = try Store()
            try store.put("W", [0, 0, 0] as [Float], shape: [3, 1])
            let session = try Session(Program(memory: "linreg"), store, pairs: pairs)
            try session.feed("x", LinearRegression.x)
            try session.feed("target", LinearRegression.target)
            try session.feed("lr", [0.1])
            let loss = try session.buffer("loss")
            try session.run()
            #expect(abs(loss[0] - LinearRegression.firstLoss) < 1e-4)
            try session.run()
            #expect(abs(loss[0] - LinearRegression.secondLoss) < 1e-5)
            for _ in 2..<60 { try session.run() }
            #expect(loss[0] < 1e-10)
            let weights = try store.get("W", shape: [3, 1])
            for (got, expected) in zip(weights, LinearRegression.solution) { #expect(abs(got - expected) < 1e-5) }
            #expect(try session.buffer("loss").baseAddress == loss.baseAddress)
            let statistics = try session.statistics()
            #expect(statistics.runs == 60)
            #expect(statistics.instructions > 0)
            #expect(statistics.backing_copies == 0)
        }

        @Test func feedsAreLent() throws {
            let store = try Store()
            try store.put("W", [0, 0, 0] as [Float], shape: [3, 1])
            let session = try Session(Program(memory: "linreg"), store, pairs: pairs)
            try session.feed("lr", [0.1])
            let loss = try session.buffer("loss")
            let names = ["target", "x", "lr", "nothing"].map { (name: String) in UnsafePointer(strdup(name)) }
            defer { for name in names { free(UnsafeMutablePointer(mutating: name)) } }
            try LinearRegression.x.withUnsafeBytes { x in
                try LinearRegression.target.withUnsafeBytes { target in
                    let feeds = [
                        rlx_feed(name: names[0], data: target.baseAddress, bytes: target.count),
                        rlx_feed(name: names[1], data: x.baseAddress, bytes: x.count),
                        rlx_feed(name: names[2], data: nil, bytes: 0),
                    ]
                    try session.run(lending: feeds)
                    #expect(abs(loss[0] - LinearRegression.firstLoss) < 1e-4)
                    try session.run(lending: feeds)
                    #expect(abs(loss[0] - LinearRegression.secondLoss) < 1e-5)
                    func code(_ feed: rlx_feed) -> rlx_status? {
                        do { try session.run(lending: [feed]) } catch { return (error as? Failure)?.code }
                        return nil
                    }
                    for bytes in [0, x.count - 1, x.count + 4, .max, -1] {
                        let feed = rlx_feed(name: names[1], data: x.baseAddress, bytes: bytes)
                        #expect(code(feed) == RLX_STATUS_BAD_SHAPE)
                    }
                    let unnamed = rlx_feed(name: nil, data: x.baseAddress, bytes: x.count)
                    #expect(code(unnamed) == RLX_STATUS_INVALID_ARGUMENT)
                    let unknown = rlx_feed(name: names[3], data: x.baseAddress, bytes: x.count)
                    #expect(code(unknown) == RLX_STATUS_NOT_FOUND)
                    #expect(status { rlx_session_run_feeds(session.handle, nil, 1, $0) } == RLX_STATUS_INVALID_ARGUMENT)
                    #expect(
                        status { rlx_session_run_feeds(session.handle, feeds, -1, $0) } == RLX_STATUS_INVALID_ARGUMENT)
                }
            }
            // The next run reads the session's own buffers again.
            try session.run()
            #expect(loss[0] == 0 || loss[0].isFinite)
        }

        @Test func sessionsShareTheStore() throws {
            let store = try Store()
            try store.put("W", [1, 1, 1] as [Float], shape: [3, 1])
            let program = try Program("linreg")
            let train = try Session(program, store, pairs: pairs)
            let evaluate = try Session(program, store)
            for session in [train, evaluate] {
                try session.feed("x", LinearRegression.x)
                try session.feed("target", LinearRegression.target)
                try session.feed("lr", [0.1])
            }
            try train.run()
            let updated = try store.get("W", shape: [3, 1])
            #expect(updated != [1, 1, 1])
            try evaluate.run()
            #expect(try store.get("W", shape: [3, 1]) == updated)
            try train.run()
            #expect(try train.buffer("loss")[0] == evaluate.buffer("loss")[0])
        }

        @Test func whatIsNotBoundIsFed() throws {
            let session = try Session(Program("linreg"), Store())
            for name in ["x", "target", "W", "lr", "loss", "prediction", "W_next"] {
                #expect(try session.buffer(name).baseAddress != nil)
            }
            #expect(throws: Failure.self) { try session.buffer("nothing") }
            try session.feed("x", [Float](repeating: .nan, count: 24))
            try session.run()
            #expect(try session.buffer("loss")[0].isNaN)
        }

        @Test func mistakes() throws {
            let program = try Program("linreg")
            let store = try Store()
            func code(_ pairs: [(String, String)], _ ranges: [(String, Int32, Int32)] = []) -> rlx_status? {
                do {
                    _ = try Session(program, store, pairs: pairs, ranges: ranges)
                    return nil
                } catch {
                    return (error as? Failure)?.code
                }
            }
            #expect(code([("W", "W_next")]) == RLX_STATUS_NOT_FOUND)
            try store.put("W", [0, 0, 0] as [Float], shape: [3, 1])
            #expect(code([("V", "W_next")]) == RLX_STATUS_NOT_FOUND)
            #expect(code([("W", "V_next")]) == RLX_STATUS_NOT_FOUND)
            #expect(code([("W", "loss")]) == RLX_STATUS_BAD_SHAPE)
            #expect(code([("W", "W_next"), ("W", "W_next")]) == RLX_STATUS_INVALID_ARGUMENT)
            #expect(code([], [("x", 0, 3)]) == RLX_STATUS_BAD_DTYPE)
            #expect(code([], [("nothing", 0, 3)]) == RLX_STATUS_NOT_FOUND)
            #expect(code([], [("x", 3, 0)]) == RLX_STATUS_INVALID_ARGUMENT)
            try store.put("x", [1] as [Float], shape: [1])
            #expect(code([]) == RLX_STATUS_BAD_SHAPE)
        }
    }
}
