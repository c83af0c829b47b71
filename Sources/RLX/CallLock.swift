// Has calls take turns, but none that a signal handler makes in the middle of another one. Knows not what they do.

import Foundation
import RLXKernels

/// A lock for calls that must not overlap. A call that comes from inside of the question whether to stop does not wait:
/// the call that asks may be the one that it would wait for, or keep that one waiting.
final class CallLock: @unchecked Sendable {
    private let lock = NSRecursiveLock()
    private var isTaken = false
    private let subject: String

    init(_ subject: String) { self.subject = subject }

    /// Throws `busy` from inside of the question, while another call is being made.
    func withLock<R>(_ body: () throws(RLXError) -> R) throws(RLXError) -> R {
        try reading { () throws(RLXError) in
            if isTaken { throw isBusy }
            isTaken = true
            defer { isTaken = false }
            return try body()
        }
    }

    /// As `withLock`, and inside of the call that asks too: for what that leaves as it is until nobody can stop it.
    func reading<R>(_ body: () throws(RLXError) -> R) throws(RLXError) -> R {
        if !rlxk_is_asking() {
            lock.lock()
        } else if !lock.try() {
            throw isBusy
        }
        defer { lock.unlock() }
        return try body()
    }

    /// For what cannot fail: waits in any case.
    func waiting<R>(_ body: () -> R) -> R {
        lock.lock()
        defer { lock.unlock() }
        return body()
    }

    private var isBusy: RLXError {
        RLXError(
            .busy, "the \(subject) is busy with a call that a signal came into; act on the signal after it",
            subject: subject)
    }
}
