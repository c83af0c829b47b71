import CRLX
import Testing

/// Counts handles around each test of a serialized suite: as many are alive after it as before.
struct NoLeaks: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let before = rlx_live_handles()
        try await function()
        #expect(rlx_live_handles() == before, "handles were not given back")
    }
}

extension Trait where Self == NoLeaks {
    static var noLeaks: Self { Self() }
}
