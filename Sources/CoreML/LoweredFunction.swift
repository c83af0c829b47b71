// States as ordinary inputs and outputs, and classifiers without their last operation: what our runtime runs.
import MILFormat

/// A function rewritten for a runtime that knows neither states nor labels.
struct LoweredFunction {
    private(set) var function: Function
    /// From a state to the output that holds its value after the run.
    private(set) var newStates: [String: String] = [:]
    private(set) var classifier: Classifier?

    struct Classifier {
        let probabilities: String
        let labels: [Label]
        /// Names of the outputs that `classify` made.
        let labelOutput: String
        let dictionaryOutput: String
    }

    enum Label: Hashable { case string(String), int64(Int64) }

    init(function: Function, classifier: Classifier?) {
        self.function = function
        self.classifier = classifier
    }

    init(_ function: Function, states: Set<String>) throws {
        self.function = function
        guard var body = function.body else { return }
        try takeOutClassifier(&body)
        if !states.isEmpty { try rename(states, &body) }
        self.function.specializations = [function.opset: body]
        self.function.inputs = function.inputs.map { input in
            guard case .state(let tensor) = input.type else { return input }
            return NamedType(name: input.name, type: .tensor(tensor))
        }
    }

    private mutating func takeOutClassifier(_ body: inout Block) throws {
        guard let index = body.operations.firstIndex(where: { $0.type == "classify" }) else { return }
        let operation = body.operations.remove(at: index)
        guard case .name(let probabilities)? = operation.inputs["probabilities"]?.first,
            let classes = operation.inputs["classes"]?.first, operation.outputs.count == 2,
            let labels = Self.labels(classes, body), !labels.isEmpty
        else { throw MLModelError(.generic, "the classify operation has no labels or no probabilities") }
        classifier = Classifier(
            probabilities: probabilities, labels: labels, labelOutput: operation.outputs[0].name,
            dictionaryOutput: operation.outputs[1].name)
        let made = Set(operation.outputs.map(\.name))
        body.outputs.removeAll { made.contains($0) }
        if !body.outputs.contains(probabilities) { body.outputs.append(probabilities) }
    }

    private static func labels(_ binding: Binding, _ body: Block) -> [Label]? {
        switch binding {
        case .value(let value): return value.labels
        case .name(let name):
            let constant = body.operations.first { $0.type == "const" && $0.outputs.first?.name == name }
            return constant?.attributes["val"]?.labels
        }
    }

    /// Reads become copies of the value last written; the last value of each state becomes an output.
    private mutating func rename(_ states: Set<String>, _ body: inout Block) throws {
        var current = Dictionary(uniqueKeysWithValues: states.map { ($0, $0) })
        var operations: [MILFormat.Operation] = []
        for var operation in body.operations {
            guard case .name(let state)? = operation.inputs["input"]?.first, let value = current[state] else {
                guard !operation.blocks.contains(where: { $0.touchesState }) else {
                    throw MLModelError(.generic, "states inside of branches and loops are not supported")
                }
                operations.append(operation)
                continue
            }
            switch operation.type {
            case "read_state":
                operation.type = "identity"
                operation.inputs = ["x": [.name(value)]]
                operations.append(operation)
            case "write_state":
                guard case .name(let data)? = operation.inputs["data"]?.first else {
                    throw MLModelError(.generic, "write_state has no data")
                }
                current[state] = data
            default: operations.append(operation)
            }
        }
        body.operations = operations
        newStates = current.filter { $0 != $1 }
        for output in newStates.values where !body.outputs.contains(output) { body.outputs.append(output) }
    }
}

extension Block {
    fileprivate var touchesState: Bool {
        operations.contains { operation in
            operation.type == "read_state" || operation.type == "write_state"
                || operation.blocks.contains { $0.touchesState }
        }
    }
}

extension Value {
    /// Class labels: a list or a tensor of strings or integers.
    fileprivate var labels: [LoweredFunction.Label]? {
        switch payload {
        case .strings(let values): return values.map { .string($0) }
        case .longInts(let values): return values.map { .int64($0) }
        case .ints(let values): return values.map { .int64(Int64($0)) }
        case .list(let values):
            let labels = values.compactMap { $0.labels?.first }
            return labels.count == values.count ? labels : nil
        default: return nil
        }
    }
}
