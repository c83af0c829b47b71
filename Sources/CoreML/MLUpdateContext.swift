// What an update task tells its handlers.
import Foundation
import MILFormat

public protocol MLWritable: NSObjectProtocol {
    /// Writes a compiled model to a directory that must not exist.
    func write(to url: URL) throws
}

public struct MLUpdateProgressEvent: OptionSet, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    public static var trainingBegin: MLUpdateProgressEvent { .init(rawValue: 1) }
    public static var epochEnd: MLUpdateProgressEvent { .init(rawValue: 2) }
    public static var miniBatchEnd: MLUpdateProgressEvent { .init(rawValue: 4) }
}

open class MLUpdateProgressHandlers: NSObject {
    let interestedEvents: MLUpdateProgressEvent
    let progressHandler: ((MLUpdateContext) -> Void)?
    let completionHandler: (MLUpdateContext) -> Void

    public init(
        forEvents interestedEvents: MLUpdateProgressEvent, progressHandler: ((MLUpdateContext) -> Void)?,
        completionHandler: @escaping (MLUpdateContext) -> Void
    ) {
        self.interestedEvents = interestedEvents
        self.progressHandler = progressHandler
        self.completionHandler = completionHandler
    }
}

open class MLUpdateContext: NSObject {
    public let task: MLUpdateTask
    /// As it was when the event came; it stays so, whatever the task does afterwards.
    public let model: any MLModel & MLWritable
    /// Empty when the task has ended.
    public let event: MLUpdateProgressEvent
    public let metrics: [MLMetricKey: Any]
    public let parameters: [MLParameterKey: Any]

    init(
        task: MLUpdateTask, model: UpdatedModel, event: MLUpdateProgressEvent, metrics: [MLMetricKey: Any],
        parameters: [MLParameterKey: Any]
    ) {
        self.task = task
        self.model = model
        self.event = event
        self.metrics = metrics
        self.parameters = parameters
    }
}

/// A model that can be written. It is where the one that it was made from is not: in memory.
final class UpdatedModel: MLModel, MLWritable {
    private let source: URL

    init(_ package: Package, _ configuration: MLModelConfiguration, source: URL) throws {
        self.source = source
        try super.init(package, configuration)
    }

    func write(to url: URL) throws {
        // Core ML itself copies the original's files first, which fails on the original's own place.
        guard url.standardizedFileURL.path != source.standardizedFileURL.path else {
            throw MLModelError(.update, "Failed to copy original model files: write to another place, then replace")
        }
        do {
            try package.write(to: url.path)
        } catch {
            throw MLModelError(error)
        }
    }
}
