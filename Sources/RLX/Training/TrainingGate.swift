// When training may go on: heat, memory and the background, asked between two updates.

import Foundation

/// What a fit is to do next.
public enum Passage: Sendable, Hashable {
    /// Go on.
    case go
    /// Write the checkpoint and give memory back, then go on.
    case save
    /// Write the checkpoint, then wait until the gate opens again.
    case pause
    /// Write the checkpoint and end.
    case stop
}

/// Lets a fit go on, wait or end. Asked between two updates, so it should answer at once.
public protocol TrainingGate: Sendable {
    /// What the fit is to do before its next update.
    func passage() -> Passage
}

/// A gate that the system works: it pauses a fit while the device is hot and, unless it may run there, while the
/// app is in the background, and has it saved when memory is short.
///
/// ```swift
/// let gate = SystemGate(runsInBackground: false)
/// try await session.fit(batches, options: .init(checkpoint: url, gate: gate))
/// ```
public final class SystemGate: TrainingGate, @unchecked Sendable {
    private let lock = NSLock()
    private let runsInBackground: Bool
    private var isInBackground = false
    private var isMemoryShort = false
    private var isStopped = false
    private var observers: [any NSObjectProtocol] = []
    #if canImport(Darwin)
    private let pressure = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical])
    #endif

    /// A task that the system started in the background, such as a `BGProcessingTask`, passes true and calls
    /// `stop()` in its expiration handler.
    public init(runsInBackground: Bool) {
        self.runsInBackground = runsInBackground
        // By their names, since a library for every platform links no UIKit.
        observe("UIApplicationDidEnterBackgroundNotification") { $0.isInBackground = true }
        observe("UIApplicationWillEnterForegroundNotification") { $0.isInBackground = false }
        observe("UIApplicationDidReceiveMemoryWarningNotification") { $0.isMemoryShort = true }
        #if canImport(Darwin)
        pressure.setEventHandler { [weak self] in self?.locked { $0.isMemoryShort = true } }
        pressure.activate()
        #endif
    }

    deinit {
        for observer in observers { NotificationCenter.default.removeObserver(observer) }
        #if canImport(Darwin)
        pressure.cancel()
        #endif
    }

    /// Ends the fit at the next update, with a checkpoint.
    public func stop() { locked { $0.isStopped = true } }

    /// `pause` in heat and in the background, `save` once after each warning of memory, `stop` after `stop()`.
    public func passage() -> Passage {
        let isHot = Self.isHot
        return locked { gate in
            if gate.isStopped { return .stop }
            if isHot || (gate.isInBackground && !gate.runsInBackground) { return .pause }
            defer { gate.isMemoryShort = false }
            return gate.isMemoryShort ? .save : .go
        }
    }

    private static var isHot: Bool {
        #if canImport(Darwin)
        ProcessInfo.processInfo.thermalState.rawValue >= ProcessInfo.ThermalState.serious.rawValue
        #else
        false
        #endif
    }

    private func observe(_ name: String, _ change: @escaping @Sendable (SystemGate) -> Void) {
        observers.append(
            NotificationCenter.default.addObserver(forName: .init(name), object: nil, queue: nil) { [weak self] _ in
                self?.locked(change)
            })
    }

    private func locked<R>(_ body: (SystemGate) -> R) -> R {
        lock.lock()
        defer { lock.unlock() }
        return body(self)
    }
}
