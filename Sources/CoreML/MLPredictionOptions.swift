// Wishes for one prediction.
import Foundation

open class MLPredictionOptions: NSObject {
    open var usesCPUOnly = false
    /// Arrays that outputs should be written into, by name; they may be ignored.
    open var outputBackings: [String: Any] = [:]

    public override init() {}
}
