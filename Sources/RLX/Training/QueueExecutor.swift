// A thread of its own for an actor that computes for long: neither the main one nor the shared pool's few.

import Dispatch

final class QueueExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "rlx.training", qos: .userInitiated)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}
