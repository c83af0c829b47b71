#if os(Linux)
// Core ML calls that fail, run at the same time or are cancelled: the store holds whole values whatever happens.
import CoreML
import Foundation
import Testing

@testable import RLX

@Suite struct ExecutorFaultTests {
    @Test func aFailedPredictionChangesNothing() throws {
        try Way.coreML { options in
            let regression = try Regression(options)
            _ = try regression.step()
            let weights = try regression.weights()
            for _ in 0..<3 {
                let error = #expect(throws: RLXError.self) {
                    try Unkindness.$failure.withValue(MLModelError(.generic, userInfo: [:])) {
                        _ = try regression.step()
                    }
                }
                #expect(error?.code == .internal)
                #expect(error?.detail.contains(MLModelErrorDomain) == true)
                #expect(try regression.weights() == weights)
            }
            let reference = try Regression(options)
            _ = try reference.step()
            #expect(try regression.step() == reference.step())
            #expect(try regression.weights() == reference.weights())
        }
    }

    @Test func sessionsOfOneStoreTakeTurns() async throws {
        let (first, second) = try Way.coreML { options in
            let first = try Regression(options)
            return (first, try first.sibling(options))
        }
        await withTaskGroup(of: Void.self) { group in
            for session in [first.session, second] {
                group.addTask {
                    for _ in 0..<20 { try? session.run() }
                }
            }
        }
        let expected = try Way.cpu { try Regression($0) }
        for _ in 0..<40 { _ = try expected.step() }
        for (got, wanted) in zip(try first.weights(), try expected.weights()) { #expect(abs(got - wanted) < 1e-5) }
        #expect(first.session.statistics.runs + second.statistics.runs == 40)
    }

    @Test func modelsOfOneProcessRunConcurrently() async throws {
        let expected = try Way.cpu { options in
            let regression = try Regression(options)
            return try (0..<10).map { _ in try regression.step() }
        }
        let regressions = try Way.coreML { options in try (0..<4).map { _ in try Regression(options) } }
        let runs = try await withThrowingTaskGroup(of: [Float].self) { group in
            for regression in regressions {
                group.addTask { try (0..<10).map { _ in try regression.step() } }
            }
            return try await group.reduce(into: [[Float]]()) { $0.append($1) }
        }
        for run in runs {
            for (got, wanted) in zip(run, expected) { #expect(abs(got - wanted) <= 1e-5 * max(wanted, 1e-3)) }
        }
    }

    @Test func updatesCanBeCancelled() throws {
        let model = try Data(contentsOf: Fixture.network("mlp_sgd"))
        let data = [
            "x": try Tensor((0..<40).map { Float($0 % 7) / 7 }, shape: [10, 4]),
            "probabilities_true": try Tensor((0..<10).map { Int32($0 % 3) }, shape: [10]),
        ]
        try Device.$coreMLIsPresent.withValue(true) {
            var options = NetworkUpdateOptions()
            options.epochs = 50
            let error = #expect(throws: RLXError.self) {
                _ = try NetworkUpdate.run(model: model, data: data, options: options, progress: { _ in false })
            }
            #expect(error?.message.contains("cancelled") == true)
            options.epochs = 2
            let update = try NetworkUpdate.run(model: model, data: data, options: options)
            #expect(update.losses.count == 6)
            #expect(update.layers == ["hidden", "out"])
            #expect(try update.parameter("out", .weights).shape == [3, 8])
            #expect(throws: RLXError.self) { _ = try update.parameter("act", .weights) }
            options.epochs = 4
            #expect(throws: RLXError.self) { _ = try NetworkUpdate.run(model: model, data: data, options: options) }
            #expect(throws: RLXError.self) { _ = try NetworkUpdate.run(model: model, data: ["x": data["x"]!]) }
            #expect(throws: RLXError.self) { _ = try NetworkUpdate.run(model: Data([1, 2, 3]), data: data) }
        }
    }
}

extension Regression {
    /// Another session over the same store and the same feeds.
    fileprivate func sibling(_ options: ProgramSession.Options) throws -> ProgramSession {
        var options = options
        options.pairs = [.init(input: "W", output: "W_next")]
        let session = try ProgramSession(Fixture.program("linreg"), store: store, options: options)
        try session.feed("x", Tensor(LinearRegression.x, shape: [8, 3]))
        try session.feed("target", Tensor(LinearRegression.target, shape: [8, 1]))
        try session.feed("lr", Tensor([0.1] as [Float], shape: [1]))
        return session
    }
}
#endif
