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

/// Linear regression from zero weights.
private struct Regression {
    let store: Store
    let session: Session

    init() throws {
        store = try Store()
        try store.put("W", [0, 0, 0] as [Float], shape: [3, 1])
        session = try Session(Program(memory: "linreg"), store, pairs: [("W", "W_next")])
    }

    func weights() throws -> [Float] { try store.get("W", shape: [3, 1]) }

    /// `rlx_session_run_steps`: how many runs it made, and their losses.
    func steps(
        _ count: Int64, x: [Float], target: [Float], order: [Int64], rates: [Float], losses: inout [Float],
        ending: rlx_ending = RLX_ENDING_NONE
    ) throws -> Int64 {
        var names: [UnsafeMutablePointer<CChar>] = []
        defer { for name in names { free(name) } }
        func name(_ text: String) -> UnsafePointer<CChar>? {
            guard let copy = strdup(text) else { return nil }
            names.append(copy)
            return UnsafePointer(copy)
        }
        var done: Int64 = -1
        try x.withUnsafeBytes { x in
            try target.withUnsafeBytes { target in
                try rates.withUnsafeBytes { rates in
                    try order.withUnsafeBufferPointer { order in
                        try losses.withUnsafeMutableBytes { losses in
                            let feeds = [
                                rlx_series(
                                    name: name("target"), data: target.baseAddress, bytes: target.count,
                                    block_bytes: 4, blocks: order.baseAddress, block_count: order.count),
                                rlx_series(
                                    name: name("x"), data: x.baseAddress, bytes: x.count, block_bytes: 12,
                                    blocks: order.baseAddress, block_count: order.count),
                                rlx_series(
                                    name: name("lr"), data: rates.baseAddress, bytes: rates.count, block_bytes: 4,
                                    blocks: nil, block_count: 0),
                            ]
                            let record = rlx_record(
                                name: name("loss"), data: losses.baseAddress, bytes: losses.count,
                                ending: Int32(bitPattern: ending.rawValue))
                            try feeds.withUnsafeBufferPointer { feeds in
                                try withUnsafePointer(to: record) { record in
                                    var steps = rlx_steps(
                                        size: MemoryLayout<rlx_steps>.size, count: count, feeds: feeds.baseAddress,
                                        feed_count: feeds.count, records: record, record_count: 1, nanoseconds: 0)
                                    try call { rlx_session_run_steps(session.handle, &steps, &done, $0) }
                                }
                            }
                        }
                    }
                }
            }
        }
        return done
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
            var written: [Float] = [-1, -1]
            written.withUnsafeMutableBytes { memory in
                func run(_ name: String, _ bytes: Int) -> rlx_status {
                    name.withCString { name in
                        let targets = [rlx_target(name: name, data: memory.baseAddress, bytes: bytes)]
                        return status { rlx_session_run_lent(session.handle, nil, 0, targets, 1, $0) }
                    }
                }
                #expect(run("loss", 8) == RLX_STATUS_BAD_SHAPE)
                #expect(run("loss", -1) == RLX_STATUS_BAD_SHAPE)
                #expect(run("nothing", 4) == RLX_STATUS_NOT_FOUND)
                #expect(run("loss", 4) == RLX_STATUS_OK)
            }
            #expect(written[0] >= 0 && written[1] == -1)
            // The next run uses the session's own buffers again.
            try session.run()
            #expect(loss[0] == 0 || loss[0].isFinite)
        }

        @Test func manyRunsInOneCall() throws {
            // Four rows of x and target in another order each run, and a rate of its own.
            let order: [Int64] = [0, 1, 2, 3, 4, 5, 6, 7, 7, 5, 3, 1, 6, 4, 2, 0, 1, 1, 2, 3, 5, 7, 0, 4]
            let rates: [Float] = [0.1, 0.05, 0.025]
            let (x, target) = (LinearRegression.x, LinearRegression.target)
            let single = try Regression()
            var expected: [Float] = []
            for run in 0..<3 {
                let rows = order[8 * run..<8 * run + 8].map { Int($0) }
                try single.session.feed("x", rows.flatMap { x[3 * $0..<3 * $0 + 3] })
                try single.session.feed("target", rows.map { target[$0] })
                try single.session.feed("lr", [rates[run]])
                try single.session.run()
                expected.append(try single.session.buffer("loss")[0])
            }
            let many = try Regression()
            var losses = [Float](repeating: -1, count: 3)
            #expect(try many.steps(3, x: x, target: target, order: order, rates: rates, losses: &losses) == 3)
            #expect(losses == expected)
            #expect(try many.weights() == single.weights())
            #expect(try many.session.statistics().runs == 3)

            // The second run has a loss that is not finite: the call ends with it.
            var broken = target
            broken[1] = .infinity
            let ended = try Regression()
            let rows = order[8...].map { $0 } + order[..<8]
            #expect(
                try ended.steps(
                    3, x: x, target: broken, order: [0, 2, 3, 4, 5, 6, 7, 0] + rows, rates: rates, losses: &losses,
                    ending: RLX_ENDING_NOT_FINITE) == 2)
            #expect(losses[0].isFinite && !losses[1].isFinite)
        }

        @Test func manyRunsRefuseWhatDoesNotFit() throws {
            let regression = try Regression()
            let before = try regression.weights()
            let (x, target) = (LinearRegression.x, LinearRegression.target)
            var losses: [Float] = [0, 0]
            func code(
                _ count: Int64, order: [Int64] = Array(0..<8) + Array(0..<8), rates: [Float] = [0.1, 0.1],
                ending: Int32 = 0
            ) -> rlx_status? {
                do {
                    _ = try regression.steps(
                        count, x: x, target: target, order: order, rates: rates, losses: &losses,
                        ending: rlx_ending(UInt32(bitPattern: ending)))
                } catch { return (error as? Failure)?.code }
                return nil
            }
            #expect(code(3) == RLX_STATUS_BAD_SHAPE)
            #expect(code(2, rates: [0.1]) == RLX_STATUS_BAD_SHAPE)
            #expect(code(2, order: Array(0..<15)) == RLX_STATUS_BAD_SHAPE)
            #expect(code(.max) == RLX_STATUS_BAD_SHAPE)
            #expect(code(-1) == RLX_STATUS_INVALID_ARGUMENT)
            #expect(code(1, order: Array(1...8)) == RLX_STATUS_INVALID_ARGUMENT)
            #expect(code(1, order: [-1] + Array(0..<7)) == RLX_STATUS_INVALID_ARGUMENT)
            #expect(code(1, ending: 7) == RLX_STATUS_INVALID_ARGUMENT)
            #expect(code(0) == nil)
            #expect(try regression.weights() == before)
            #expect(code(1) == nil)
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
