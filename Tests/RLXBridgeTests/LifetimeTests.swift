import CRLX
import Testing

/// One test at a time, so that handles can be counted: none is left behind.
@Suite(.serialized, .noLeaks) enum BridgeTests {}

extension BridgeTests {
    @Suite struct LifetimeTests {
        @Test func allHandlesCanBeGivenBack() throws {
            let before = rlx_live_handles()
            do {
                let store = try Store()
                try store.put("W", [0, 0, 0] as [Float], shape: [3, 1])
                let session = try Session(Program("linreg"), store, pairs: [("W", "W_next")])
                #expect(throws: Failure.self) { try session.buffer("nothing") }
                #expect(rlx_live_handles() == before + 2)
            }
            #expect(rlx_live_handles() == before)
        }

        @Test func sessionsOutliveWhatTheyWereMadeFrom() throws {
            var session: Session?
            do {
                let store = try Store()
                try store.put("W", [0, 0, 0] as [Float], shape: [3, 1])
                session = try Session(Program(memory: "linreg"), store, pairs: [("W", "W_next")])
            }
            try session?.run()
            #expect(try session?.buffer("loss")[0] == 0)
        }

        @Test func errorsOutliveEverything() {
            var error: OpaquePointer?
            #expect(rlx_program_load("/nowhere", nil, nil, &error) == RLX_STATUS_INVALID_ARGUMENT)
            #expect(String(cString: rlx_error_subject(error)) == "out")
            rlx_error_destroy(error)
        }
    }
}
