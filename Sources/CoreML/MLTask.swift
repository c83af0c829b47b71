// MLTask: work that goes on in the background. Knows nothing of what the work is.
import Foundation

public enum MLTaskState: Int, Sendable {
    case suspended = 1, running, cancelling, completed, failed
}

open class MLTask: NSObject {
    public let taskIdentifier = UUID().uuidString
    private let lock = NSLock()
    private var lockedState = MLTaskState.suspended
    private var lockedError: (any Error)?

    /// Tasks are made by subclasses of this module only.
    override init() {}

    open var state: MLTaskState { lock.withLock { lockedState } }
    open var error: (any Error)? { lock.withLock { lockedError } }

    /// Starts a task that is suspended.
    open func resume() {
        guard move(from: [.suspended], to: .running) else { return }
        onBackground { [self] in run() }
    }

    /// Asks the task to end early. It ends with an error.
    open func cancel() {
        if move(from: [.suspended], to: .cancelling) {
            onBackground { [self] in run() }
        } else {
            _ = move(from: [.running], to: .cancelling)
        }
    }

    /// Called once, on a thread of its own.
    func run() {}

    var isCancelled: Bool { state == .cancelling }

    func finish(_ error: (any Error)?) {
        lock.withLock {
            lockedState = error == nil ? .completed : .failed
            lockedError = error
        }
    }

    private func move(from states: [MLTaskState], to state: MLTaskState) -> Bool {
        lock.withLock {
            guard states.contains(lockedState) else { return false }
            lockedState = state
            return true
        }
    }
}
