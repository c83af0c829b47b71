// Operations that go by values and not by plans: branches, loops, and the labels of classifiers.
import MILFormat

/// One operation of a block that runs.
struct ValueCall {
    let block: BlockNode
    let index: Int
    let scope: Scope
    let evaluator: Evaluator

    var operation: Operation { block.operations[index] }
    var blocks: [BlockNode] { block.blocks[index] }
    var place: RuntimeError.Place { operation.place }

    func failure(_ fault: RuntimeError.Fault) -> RuntimeError { .invalid(fault, place) }

    // MARK: Operands

    func values(_ parameter: String) throws(RuntimeError) -> [Datum] {
        guard let bindings = operation.inputs[parameter] else { throw failure(.missingParameter(parameter)) }
        var result: [Datum] = []
        for binding in bindings { result.append(try resolve(binding)) }
        return result
    }

    func value(_ parameter: String) throws(RuntimeError) -> Datum {
        let all = try values(parameter)
        guard all.count == 1 else { throw failure(.severalBindings(parameter)) }
        return all[0]
    }

    func tensor(_ parameter: String) throws(RuntimeError) -> Storage {
        guard let storage = try value(parameter).storage else {
            throw failure(.elementType(parameter: parameter, got: "no tensor", expected: "a tensor"))
        }
        return storage
    }

    private func resolve(_ binding: Binding) throws(RuntimeError) -> Datum {
        switch binding {
        case .name(let name): return try scope.value(name, place)
        case .value(let value):
            let graph = GraphBuilder()
            let reader = ConstantReader(blobs: evaluator.blobs)
            switch try reader.read(value, name: place.subject, graph, place) {
            case .strings(let strings, let isScalar): return .constant(.strings(strings, isScalar: isScalar))
            case .view(let view):
                guard let (address, owner) = graph.constantMemory(view) else { throw failure(.constantPayload) }
                return .tensor(Storage(borrowing: address, type: view.type, shape: view.shape, owner: owner))
            }
        }
    }

    // MARK: Results

    /// Gives the outputs their values, which must be as they are declared.
    func define(_ results: [Datum]) throws(RuntimeError) {
        guard results.count == operation.outputs.count else {
            throw failure(.outputCount(declared: operation.outputs.count, expected: results.count))
        }
        for (result, output) in zip(results, operation.outputs) {
            if let storage = result.storage, !output.type.admits(storage.type, storage.shape) {
                let inferred = TensorType(storage.type.dataType, shape: storage.shape)
                throw failure(
                    .declaredType(
                        output: output.name, declared: output.type.name, inferred: ValueType.tensor(inferred).name))
            }
            try scope.define(output.name, result, place)
        }
    }
}

extension Datum {
    var storage: Storage? {
        switch self {
        case .tensor(let storage), .constant(.tensor(let storage)): storage
        case .constant(.strings), .list, .state, .label, .probabilities: nil
        }
    }
}

extension Storage {
    /// The elements as numbers.
    var numbers: [Double] {
        guard let address = bytes.baseAddress else { return [] }
        return MILRuntime.numbers(in: View(buffer: 0, type: type, shape: shape), at: UnsafeRawPointer(address))
    }
}

enum ValueOperations {
    typealias Perform = @Sendable (ValueCall) throws(RuntimeError) -> Void

    static let all: [String: Perform] = controlFlow.merging(listOperations) { one, _ in one }

    private static let controlFlow: [String: Perform] = [
        "cond": { (call) throws(RuntimeError) in
            guard call.blocks.count == 2 else { throw call.failure(.noBlocks(2)) }
            let chosen = try call.truth(of: call.value("pred"), "pred") ? call.blocks[0] : call.blocks[1]
            try call.define(call.run(chosen, []))
        },
        "while_loop": { (call) throws(RuntimeError) in
            guard call.blocks.count == 2 else { throw call.failure(.noBlocks(2)) }
            let (condition, body) = (call.blocks[0], call.blocks[1])
            var values = try call.values("loop_vars")
            for round in 0... {
                let goesOn = try call.run(condition, values)
                guard goesOn.count == 1 else { throw call.failure(.noBlocks(2)) }
                if try !call.truth(of: goesOn[0], "the condition") { break }
                guard round < call.evaluator.options.largestLoopCount else {
                    throw .unsupported(.feature("a loop of more than \(round) rounds"), call.place)
                }
                try call.evaluator.checkTime(call.place)
                values = try call.run(body, values)
            }
            try call.define(values)
        },
        "classify": { (call) throws(RuntimeError) in
            let probabilities = try call.tensor("probabilities")
            let numbers = probabilities.numbers
            guard probabilities.type.isFloat, !numbers.isEmpty, call.operation.outputs.count == 2 else {
                throw call.failure(
                    .shape(parameter: "probabilities", got: probabilities.shape, expected: "one a class"))
            }
            // The first of the largest; NaN is never larger.
            var best = 0
            for index in numbers.indices where numbers[index] > numbers[best] || numbers[best].isNaN { best = index }
            try call.define([.label(best), .probabilities(probabilities)])
        },
    ]
}

extension ValueCall {
    fileprivate func truth(of value: Datum, _ parameter: String) throws(RuntimeError) -> Bool {
        guard let storage = value.storage, storage.type == .bool, storage.bytes.count == 1 else {
            throw failure(.elementType(parameter: parameter, got: "something else", expected: "one bool"))
        }
        return storage.bytes[0] != 0
    }

    /// The outputs of a block whose inputs have these values.
    fileprivate func run(_ block: BlockNode, _ values: [Datum]) throws(RuntimeError) -> [Datum] {
        guard block.inputs.count == values.count else { throw failure(.noBlocks(blocks.count)) }
        let inner = Scope(parent: scope)
        for (input, value) in zip(block.inputs, values) {
            // What is constant in the first round of a loop is not in the next.
            try inner.define(input.name, value.storage.map(Datum.tensor) ?? value, place)
        }
        try block.run(inner, evaluator)
        var results: [Datum] = []
        for name in block.outputs { results.append(try inner.value(name, place)) }
        return results
    }
}
