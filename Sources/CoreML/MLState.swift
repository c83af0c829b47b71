// MLState: the buffers of a stateful model.
import Foundation

/// Two predictions must not use one state at the same time.
@available(macOS 15, iOS 18, *)
public final class MLState: NSObject, @unchecked Sendable {
    let arrays: [String: MLMultiArray]

    init(_ descriptions: [String: MLFeatureDescription]) {
        arrays = descriptions.compactMapValues { description in
            guard let constraint = description.stateConstraint,
                let layout = ArrayLayout(cOrder: constraint.bufferShape)
            else { return nil }
            let array = MLMultiArray(layout: layout, dataType: constraint.dataType)
            _ = array.bytes.initializeMemory(as: UInt8.self, repeating: 0)
            return array
        }
    }

    /// The array is valid inside the body only; writing to it sets the state.
    public func withMultiArray<R>(for stateName: String, _ body: (MLMultiArray) throws -> R) rethrows -> R {
        guard let array = arrays[stateName] else { preconditionFailure("there is no state '\(stateName)'") }
        return try body(array)
    }

    /// The only state's array. Throws when the model has none or several.
    public func withMultiArray<R>(_ body: (MLMultiArray) -> R) throws -> R {
        guard arrays.count == 1, let array = arrays.values.first else {
            throw MLModelError(.generic, "the model has \(arrays.count) states; name the one that is meant")
        }
        return body(array)
    }
}
