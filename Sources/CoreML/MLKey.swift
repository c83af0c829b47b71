// Names of hyperparameters and metrics.
import Foundation

open class MLKey: NSObject, NSCopying {
    public let name: String
    public let scope: String?

    init(name: String, scope: String? = nil) {
        self.name = name
        self.scope = scope
    }

    public func copy(with zone: NSZone? = nil) -> Any { self }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? MLKey else { return false }
        return type(of: self) == type(of: other) && name == other.name && scope == other.scope
    }

    open override var hash: Int { name.hashValue ^ (scope?.hashValue ?? 0) }
    open override var description: String { scope.map { "\($0).\(name)" } ?? name }
}

public final class MLMetricKey: MLKey {
    public class var lossValue: MLMetricKey { MLMetricKey(name: "lossValue") }
    public class var epochIndex: MLMetricKey { MLMetricKey(name: "epochIndex") }
    public class var miniBatchIndex: MLMetricKey { MLMetricKey(name: "miniBatchIndex") }
}

public final class MLParameterKey: MLKey {
    public class var learningRate: MLParameterKey { MLParameterKey(name: "learningRate") }
    public class var momentum: MLParameterKey { MLParameterKey(name: "momentum") }
    public class var miniBatchSize: MLParameterKey { MLParameterKey(name: "miniBatchSize") }
    public class var beta1: MLParameterKey { MLParameterKey(name: "beta1") }
    public class var beta2: MLParameterKey { MLParameterKey(name: "beta2") }
    public class var eps: MLParameterKey { MLParameterKey(name: "eps") }
    public class var epochs: MLParameterKey { MLParameterKey(name: "epochs") }
    public class var shuffle: MLParameterKey { MLParameterKey(name: "shuffle") }
    public class var seed: MLParameterKey { MLParameterKey(name: "seed") }
    public class var numberOfNeighbors: MLParameterKey { MLParameterKey(name: "numberOfNeighbors") }
    public class var linkedModelFileName: MLParameterKey { MLParameterKey(name: "linkedModelFileName") }
    public class var linkedModelSearchPath: MLParameterKey { MLParameterKey(name: "linkedModelSearchPath") }
    public class var weights: MLParameterKey { MLParameterKey(name: "weights") }
    public class var biases: MLParameterKey { MLParameterKey(name: "biases") }

    public func scoped(to scope: String) -> MLParameterKey { MLParameterKey(name: name, scope: scope) }
}
