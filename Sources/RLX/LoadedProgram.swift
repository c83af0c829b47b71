// A package with one of its functions chosen: what it takes and what it gives. Immutable; runs nothing.

import MILFormat

/// One function of a Core ML package, ready to be bound by sessions.
public final class LoadedProgram: Sendable {
    let package: Package
    let function: Function
    let functionName: String?
    /// What it takes, weights that are inputs included.
    public let inputs: [Feature]
    /// What it gives, in its own order.
    public let outputs: [Feature]

    /// Loads an `.mlpackage` directory or a bare model file; `function` nil takes the default function.
    ///
    /// Throws `io` and `badPackage` for files that cannot be read, `notFound` for the function's name and
    /// `unsupported` for models that are no ML Program and for features that are no tensors of fixed shape.
    public convenience init(contentsOf path: String, function: String? = nil) throws(RLXError) {
        try self.init(function: function) { () throws(FormatError) in try Package(contentsOf: path) }
    }

    /// Loads the bytes of `model.mlmodel` and of the weight file, which are copied.
    public convenience init(
        model: UnsafeRawBufferPointer, weights: UnsafeRawBufferPointer?, function: String? = nil
    ) throws(RLXError) {
        try self.init(function: function) { () throws(FormatError) in try Package(model: model, weights: weights) }
    }

    private init(function name: String?, _ open: () throws(FormatError) -> Package) throws(RLXError) {
        do {
            package = try open()
            function = try package.function(named: name)
            functionName = name
        } catch {
            throw RLXError(error)
        }
        var inputs: [Feature] = []
        for input in function.inputs { inputs.append(try Feature(input)) }
        self.inputs = inputs
        outputs = try function.outputFeatures()
    }
}

extension Feature {
    fileprivate init(_ value: NamedType) throws(RLXError) {
        guard case .tensor(let tensor) = value.type else { throw .notATensor(value.name, "\(value.type)") }
        guard let dtype = DType(tensor.dataType), let shape = tensor.shape, elementCount(shape) != nil else {
            throw .notATensor(value.name, "\(tensor)")
        }
        self.init(name: value.name, dtype: dtype, shape: shape)
    }
}

extension Function {
    /// The outputs with the types that their operations declare.
    fileprivate func outputFeatures() throws(RLXError) -> [Feature] {
        guard let body else { return [] }
        let wanted = Set(body.outputs)
        var types: [String: NamedType] = [:]
        for input in inputs where wanted.contains(input.name) { types[input.name] = input }
        for output in body.operations.lazy.flatMap(\.outputs) where wanted.contains(output.name) {
            types[output.name] = output
        }
        var features: [Feature] = []
        for name in body.outputs where !features.contains(where: { $0.name == name }) {
            guard let type = types[name] else {
                throw RLXError(.badPackage, "no operation makes the output '\(name)'", subject: name)
            }
            features.append(try Feature(type))
        }
        return features
    }
}
