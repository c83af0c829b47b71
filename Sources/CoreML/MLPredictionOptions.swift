// Wishes for one prediction.
import Foundation

open class MLPredictionOptions: NSObject {
    public var usesCPUOnly = false
    /// Arrays that outputs should be written into, by name; they may be ignored.
    public var outputBackings: [String: Any] = [:]

    public override init() {}
}
