import Foundation
import Testing

@testable import RLX

@Suite struct TrainingTests {
    @Test func goesOnAsPythonDid() async throws {
        let golden = try Bundles.golden()
        let session = try TrainingSession(contentsOf: Bundles.url, configuration: .init(device: .cpu))
        let batches = try golden.batches()
        let tolerance = golden.tolerance
        for (index, batch) in batches.prefix(8).enumerated() {
            let report = try await session.step(batch)
            #expect(abs(report.loss - golden.losses[index]) <= tolerance, "step \(index)")
            #expect(!report.skipped)
        }
        for index in 8..<10 {
            let loss = try await session.accumulate(batches[index], weight: 2)
            #expect(abs(loss - golden.losses[index]) <= tolerance)
        }
        #expect(await session.pendingAccumulation == 2)
        #expect(try await session.stepAccumulated() == 2)
        let (loss, expected) = (try await session.evaluate(batches[0]), golden.evaluate)
        #expect(abs(loss - expected) <= tolerance)
        #expect(try await session.learningRate() == golden.lr)
        for (expected, got) in [
            (golden.params, try await session.parameters()), (golden.averages, try await session.averages()),
        ] {
            #expect(got.keys.sorted() == expected.keys.sorted())
            for (name, values) in expected {
                let scalars = try #require(got[name]).scalars(as: Float.self)
                #expect(scalars.count == values.count)
                for (a, b) in zip(scalars, values) { #expect(abs(Double(a) - Double(b)) <= tolerance, "\(name)") }
            }
        }
    }

    @Test func checkpointsAreWholeRuns() async throws {
        let scratch = try Scratch()
        let batches = try Bundles.golden().batches()
        let first = try await TrainingSession.open(Bundles.url)
        try await first.step(batches[0])
        try await first.accumulate(batches[1])
        try await first.save(to: scratch.url("run.ckpt"))
        let second = try await TrainingSession.open(Bundles.url)
        try await second.restore(from: scratch.url("run.ckpt"))
        for session in [first, second] {
            try await session.accumulate(batches[2])
            try await session.stepAccumulated()
            try await session.step(batches[3])
        }
        try await first.save(to: scratch.url("a"))
        try await second.save(to: scratch.url("b"))
        #expect(try Data(contentsOf: scratch.url("a")) == Data(contentsOf: scratch.url("b")))
        #expect(scratch.names == ["a", "b", "run.ckpt"])
    }

    @Test func exportedModelPredictsAlike() async throws {
        let scratch = try Scratch()
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        try await session.step(batches[0])
        let url = scratch.url("trained.mlpackage")
        for _ in 0..<2 { try await session.export(to: url) }
        let x = ["x": try #require(batches[1]["x"])]
        let expected = try #require(try await session.predict(x)["logits"]).scalars(as: Float.self)
        let got = try #require(try Model(contentsOf: url).predict(x)["logits"]).scalars(as: Float.self)
        for (a, b) in zip(got, expected) { #expect(abs(a - b) < 1e-6) }
    }

    /// The gradient of a batch, given back, is not the clipped and averaged step's, but its update is.
    @Test func gradientsOfOnesOwn() async throws {
        let batches = try Bundles.golden().batches()
        let (session, plain) = (
            try await TrainingSession.open(Bundles.url), try await TrainingSession.open(Bundles.url)
        )
        let before = try await session.parameters()
        let (loss, gradients) = try await session.gradients(batches[0])
        #expect(try await session.parameters() == before)
        #expect(gradients.keys.sorted() == ["b1", "w1", "w2"])
        #expect(try await plain.step(batches[0]).loss == loss)
        #expect(try await session.applyGradients(gradients))
        for (name, value) in try await plain.parameters() where name != "running" {
            let got = try await session.parameter(name).scalars(as: Float.self)
            for (a, b) in zip(got, try value.scalars(as: Float.self)) { #expect(abs(a - b) < 1e-6) }
        }
        let steps = await session.steps
        #expect(steps == 1)
        var bad = gradients
        bad["b1"] = try Tensor([Float](repeating: .infinity, count: 5), shape: [5])
        #expect(try await !session.applyGradients(bad))
        bad["b1"] = nil
        await #expect(throws: RLXError.self) { try await session.applyGradients(bad) }
        bad["b1"] = Tensor(0 as Float)
        await #expect(throws: RLXError.self) { try await session.applyGradients(bad) }
        bad = gradients
        bad["running"] = gradients["b1"]
        await #expect(throws: RLXError.self) { try await session.applyGradients(bad) }
    }

    @Test func averagesInTheModel() async throws {
        let scratch = try Scratch()
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        for batch in batches { try await session.step(batch) }
        let url = scratch.url("averaged.mlpackage")
        try await session.export(to: url, averages: true)
        try await session.setParameters(session.averages())
        let x = ["x": try #require(batches[1]["x"])]
        let expected = try #require(try await session.predict(x)["logits"]).scalars(as: Float.self)
        let got = try #require(try Model(contentsOf: url).predict(x)["logits"]).scalars(as: Float.self)
        for (a, b) in zip(got, expected) { #expect(abs(a - b) < 1e-6) }
    }

    @Test func valuesByName() async throws {
        let session = try await TrainingSession.open(Bundles.url)
        let value = try Tensor([1, 2, 3, 4, 5] as [Float], shape: [5])
        try await session.setParameter("b1", to: value)
        #expect(try await session.parameter("b1") == value)
        #expect(try await session.state(of: "b1").keys.sorted() == ["m", "v"])
        try await session.setLearningRate(0.5)
        #expect(try await session.learningRate() == 0.5)
        #expect(session.inputs.map(\.name) == ["x", "y"])
        await #expect(throws: RLXError.self) { try await session.setLearningRate(.nan) }
        await #expect(throws: RLXError.self) { try await session.parameter("b9") }
        await #expect(throws: RLXError.self) { try await session.state(of: "running") }
        await #expect(throws: RLXError.self) {
            try await session.setParameters(["b1": value, "w1": value])
        }
        #expect(try await session.parameter("b1") == value)
    }

    /// Python refuses them too: a checkpoint with one of them would load nowhere.
    @Test func numbersThatDescribeNoScheduleAreRefused() async throws {
        let session = try await TrainingSession.open(Bundles.url)
        let before = await session.schedule
        let wrong: [Schedule] = [
            .constant(.nan), .constant(-1), .step(peak: 1, every: 0), .step(peak: 1, every: 1, factor: 0),
            .exponential(peak: 1, factor: 1.5), .exponential(peak: .infinity, factor: 0.5),
            .cosine(peak: 1, total: 5, warmup: 5), .cosine(peak: 1, total: 5, warmup: -1),
            .cosine(peak: 1, total: 5, final: -1),
            .oneCycle(peak: 1, total: 1), .oneCycle(peak: 1, total: 9, rise: 1),
            .oneCycle(peak: 1, total: 9, startDivisor: 0), .plateau(.init(rate: 1, factor: .nan)),
            .plateau(.init(rate: 1, patience: -1)), .plateau(.init(rate: 1, threshold: 1)),
        ]
        for schedule in wrong {
            let error = await #expect(throws: RLXError.self) { try await session.setSchedule(schedule) }
            #expect(error?.code == .invalidArgument, "\(schedule)")
        }
        #expect(await session.schedule == before)
        let data = Data(#"{"name": "Cosine", "lr": 1, "total": 5, "warmup": 5, "final": 0}"#.utf8)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Schedule.self, from: data) }
        try await session.setSchedule(.cosine(peak: 1, total: 6, warmup: 5))
        #expect(try await session.learningRate() == 0.2)
    }

    @Test func badBatchesChangeNothing() async throws {
        let batches = try Bundles.golden().batches()
        let session = try await TrainingSession.open(Bundles.url)
        let before = try await session.parameters()
        var bad: [(Batch, RLXError.Code)] = [([:], .notFound)]
        var batch = batches[0]
        batch["z"] = Tensor(1 as Float)
        bad.append((batch, .notFound))
        batch = batches[0]
        batch["y"] = try Tensor([0, 0, 0, 0, 0, 3] as [Int32], shape: [6])
        bad.append((batch, .badFeed))
        batch["y"] = try Tensor([Float](repeating: 0, count: 6), shape: [6])
        bad.append((batch, .badDType))
        batch["y"] = try Tensor([0] as [Int32], shape: [1])
        bad.append((batch, .badShape))
        for (batch, code) in bad {
            let error = await #expect(throws: RLXError.self) { try await session.step(batch) }
            #expect(error?.code == code)
        }
        #expect(try await session.parameters() == before)
        try await session.accumulate(batches[0])
        await #expect(throws: RLXError.self) { try await session.step(batches[0]) }
        try await session.discardAccumulated()
        try await session.step(batches[0])
    }

    /// Many tasks at once: they take turns, and the session ends where the same steps in a row end.
    @Test func manyTasks() async throws {
        let batch = try Bundles.golden().batches()[0]
        let (one, many) = (try await TrainingSession.open(Bundles.url), try await TrainingSession.open(Bundles.url))
        for _ in 0..<20 { try await one.step(batch) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask { try await many.step(batch) }
                group.addTask { _ = try await many.evaluate(batch) }
            }
            try await group.waitForAll()
        }
        #expect(try await one.parameters() == many.parameters())
    }

    #if os(Linux)
    @Test func coreMLComputesTheSame() async throws {
        let batches = try Bundles.golden().batches()
        let cpu = try TrainingSession(contentsOf: Bundles.url, configuration: .init(device: .cpu))
        try await Device.$coreMLIsPresent.withValue(true) {
            let other = try TrainingSession(contentsOf: Bundles.url, configuration: .init(device: .coreML))
            for batch in batches { #expect(try await cpu.step(batch).loss == other.step(batch).loss) }
            #expect(try await cpu.parameters() == other.parameters())
        }
    }
    #endif
}
