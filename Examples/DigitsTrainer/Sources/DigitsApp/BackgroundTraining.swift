// Training while the device charges: a BGProcessingTask that ends with a checkpoint when its time is up.
//
// Info.plist lists the identifier under BGTaskSchedulerPermittedIdentifiers and `processing` under UIBackgroundModes.

#if os(iOS)
import BackgroundTasks
import DigitsKit
import RLX

enum BackgroundTraining {
    private static let identifier = "digits.training"

    /// Before the app has finished launching.
    @MainActor
    static func register(_ training: DigitsTraining) {
        BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: .main) { task in
            MainActor.assumeIsolated { run(task, training) }
        }
    }

    /// Asks for time; the system decides when.
    static func schedule() throws {
        let request = BGProcessingTaskRequest(identifier: identifier)
        request.requiresExternalPower = true
        try BGTaskScheduler.shared.submit(request)
    }

    @MainActor
    private static func run(_ task: BGTask, _ training: DigitsTraining) {
        let gate = SystemGate(runsInBackground: true)
        task.expirationHandler = { gate.stop() }
        training.start(epochs: 1, gate: gate)
        Task {
            await training.wait()
            task.setTaskCompleted(success: training.problem == nil)
        }
    }
}
#endif
