import RLX
import Testing

/// The reference regression as a session of each kind.
struct Regression {
    let store = TensorStore()
    let session: ProgramSession

    init(_ options: ProgramSession.Options, program: LoadedProgram? = nil) throws {
        var options = options
        options.pairs = [.init(input: "W", output: "W_next")]
        try store.put("W", Tensor([0, 0, 0] as [Float], shape: [3, 1]))
        let program = try program ?? Fixture.program("linreg")
        session = try ProgramSession(program, store: store, options: options)
        try session.feed("x", Tensor(LinearRegression.x, shape: [8, 3]))
        try session.feed("target", Tensor(LinearRegression.target, shape: [8, 1]))
        try session.feed("lr", Tensor([0.1] as [Float], shape: [1]))
    }

    func step() throws -> Float {
        try session.run()
        return try session.result("loss").scalars(as: Float.self)[0]
    }

    func weights() throws -> [Float] { try store.get("W").scalars(as: Float.self) }
}

@Suite struct SessionTests {
    @Test(arguments: Way.all) func linearRegression(_ way: Way) throws {
        try way { options in
            let regression = try Regression(options)
            var losses: [Float] = []
            for _ in 0..<60 { losses.append(try regression.step()) }
            #expect(abs(losses[0] - LinearRegression.firstLoss) < 1e-4)
            #expect(abs(losses[1] - LinearRegression.secondLoss) < 1e-5)
            #expect(losses[59] < 1e-10)
            for (got, expected) in zip(try regression.weights(), LinearRegression.solution) {
                #expect(abs(got - expected) < 1e-5)
            }
            #expect(regression.session.statistics.runs == 60)
            let copies = regression.session.statistics.backingCopies
            #expect(copies == (way == .cpu || way == .coreML ? 0 : 180))
        }
    }

    #if os(Linux)
    @Test func allWaysGiveTheSameBits() throws {
        let runs = try Way.all.map { way in
            try way { options in
                let regression = try Regression(options, program: Fixture.programFromMemory("linreg"))
                let losses = try (0..<10).map { _ in try regression.step() }
                return try losses + regression.weights()
            }
        }
        #expect(runs[1] == runs[0])
        #expect(runs[2] == runs[0])
    }
    #endif

    @Test(arguments: Way.all) func manyRunsAreRunsOneByOne(_ way: Way) throws {
        try way { options in
            let single = try Regression(options)
            let many = try Regression(options)
            let rates: [Float] = [0.1, 0.05, 0.025]
            let expected = try rates.map { rate in
                try single.session.feed("lr", Tensor([rate], shape: [1]))
                return try single.step()
            }
            var losses: [Float] = [0, 0, 0]
            var done = 0
            try rates.withUnsafeBytes { rates in
                try losses.withUnsafeMutableBytes { losses in
                    try many.session.run(
                        3,
                        feeds: [
                            .init(feed: many.session.feeds.index(of: "lr"), data: rates, blockBytes: 4, blocks: nil)
                        ],
                        records: [
                            .init(result: many.session.results.index(of: "loss"), data: losses, ending: .zero)
                        ],
                        nanoseconds: 0, done: &done)
                }
            }
            #expect(done == 3)
            #expect(losses == expected)
            #expect(try many.weights() == single.weights())
        }
    }

    @Test func devicesTakeTurnsOnOneStore() throws {
        let cpu = try Way.cpu { try Regression($0) }
        let expected = try (0..<6).map { _ in try cpu.step() }
        try Way.coreML { options in
            var options = options
            let regression = try Regression(options)
            options.device = .cpu
            options.pairs = [.init(input: "W", output: "W_next")]
            let other = try ProgramSession(Fixture.program("linreg"), store: regression.store, options: options)
            for feed in [("x", LinearRegression.x, [8, 3]), ("target", LinearRegression.target, [8, 1])] {
                try other.feed(feed.0, Tensor(feed.1, shape: feed.2))
            }
            try other.feed("lr", Tensor([0.1] as [Float], shape: [1]))
            var losses: [Float] = []
            for step in 0..<6 {
                if step % 3 == 2 {
                    try other.run()
                    losses.append(try other.result("loss").scalars(as: Float.self)[0])
                } else {
                    losses.append(try regression.step())
                }
            }
            for (got, expected) in zip(losses, expected) { #expect(abs(got - expected) <= 1e-5 * expected) }
        }
    }

    @Test(arguments: Way.all) func weightsCanBeSetBetweenSteps(_ way: Way) throws {
        try way { options in
            let regression = try Regression(options)
            let first = try regression.step()
            _ = try regression.step()
            try regression.store.put("W", Tensor([0, 0, 0] as [Float], shape: [3, 1]))
            #expect(try regression.step() == first)
        }
    }

    @Test(arguments: Way.all) func tensorsCanChangePlaces(_ way: Way) throws {
        try way { options in
            var options = options
            options.pairs = [.init(input: "a", output: "a_next"), .init(input: "b", output: "b_next")]
            let (one, two) = try (
                Tensor([1, 2, 3, 4] as [Float], shape: [2, 2]), Tensor([5, 6, 7, 8] as [Float], shape: [2, 2])
            )
            let store = TensorStore()
            try store.put("a", one)
            try store.put("b", two)
            let session = try ProgramSession(Fixture.program("swap"), store: store, options: options)
            try session.run()
            #expect(try store.get("a") == two)
            #expect(try store.get("b") == one)
            try session.run()
            #expect(try store.get("a") == one)
        }
    }

    @Test(arguments: Way.all) func idsOutOfRangeChangeNothing(_ way: Way) throws {
        try way { options in
            var options = options
            options.pairs = [.init(input: "a", output: "a_next"), .init(input: "b", output: "b_next")]
            options.ranges = ["ids": 0..<10]
            let one = try Tensor([1, 2, 3, 4] as [Float], shape: [2, 2])
            let store = TensorStore()
            try store.put("a", one)
            try store.put("b", Tensor([5, 6, 7, 8] as [Float], shape: [2, 2]))
            let session = try ProgramSession(Fixture.program("swap"), store: store, options: options)
            for bad in [[0, 10, 3], [0, 1, -1]] as [[Int32]] {
                try session.feed("ids", Tensor(bad, shape: [3]))
                let error = #expect(throws: RLXError.self) { try session.run() }
                #expect(error?.code == .badFeed)
                #expect(error?.subject == "ids")
                #expect(try store.get("a") == one)
            }
            try session.feed("ids", Tensor([0, 9, 3] as [Int32], shape: [3]))
            try session.run()
            #expect(try session.result("ids_next").scalars(as: Int32.self) == [1, 10, 4])
            #expect(try store.get("b") == one)
        }
    }

    @Test(arguments: Way.all) func programsWithWeightFiles(_ way: Way) throws {
        try way { options in
            for program in [try Fixture.program("linear32"), try Fixture.programFromMemory("linear32")] {
                let session = try ProgramSession(program, store: TensorStore(), options: options)
                try session.feed("x", Tensor([1, 0, 0, 0, 0, 0, 0, 1] as [Float], shape: [2, 4]))
                try session.run()
                let rows = Array(0..<6) + Array(18..<24)
                let expected = rows.map { (Float($0) - 7.5) / 4 + 0.5 }
                #expect(try session.result("y").scalars(as: Float.self) == expected)
            }
        }
    }

    @Test func bothFunctionsOfAPackage() throws {
        let program = try Fixture.program("functions", function: "first")
        try Way.coreML { options in
            let session = try ProgramSession(program, store: TensorStore(), options: options)
            #expect(session.feeds.map(\.shape) == [[2, 4]])
        }
    }

    @Test func notHere() throws {
        #if os(Linux)
        var options = ProgramSession.Options()
        options.device = .coreML
        let error = Device.$coreMLIsPresent.withValue(false) {
            #expect(throws: RLXError.self) {
                try ProgramSession(Fixture.program("linreg"), store: TensorStore(), options: options)
            }
        }
        #expect(error?.code == .unavailable)
        #endif
    }
}
