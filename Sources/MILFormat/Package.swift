// A Core ML package opened for reading: its model decoded, its weight files mapped.

/// A model with its weight files, from an `.mlpackage` directory, a bare model file, or memory.
public final class Package: BlobSource, Sendable {
    public let model: Model
    private let weights: Weights

    private enum Weights: Sendable {
        case files([String: FileBytes])
        /// Whatever its name.
        case memory(FileBytes)
        case none
    }

    /// Opens an `.mlpackage` directory or a bare model file.
    ///
    /// The model is decoded at once; weight files are mapped and must not be changed while the package lives.
    public convenience init(contentsOf path: String) throws(FormatError) {
        let modelPath = try FileBytes.isDirectory(path) ? Manifest(package: path).modelPath : path
        let model = try FileBytes(mapping: modelPath).withBuffer { (bytes) throws(FormatError) in
            try Model(decoding: bytes)
        }
        self.init(model: model, weights: .files(try Self.map(model.blobFileNames, besides: modelPath)))
    }

    /// Reads the bytes of `model.mlmodel` and of a weight file. Both are copied.
    public convenience init(model: UnsafeRawBufferPointer, weights: UnsafeRawBufferPointer?) throws(FormatError) {
        self.init(
            model: try Model(decoding: model), weights: weights.map { .memory(FileBytes(copying: $0)) } ?? .none)
    }

    private init(model: Model, weights: Weights) {
        self.model = model
        self.weights = weights
    }

    private static func map(
        _ names: Set<String>, besides modelPath: String
    ) throws(FormatError) -> [String: FileBytes] {
        var files: [String: FileBytes] = [:]
        for name in names {
            let prefix = "@model_path/"
            let relative = name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : name
            guard Manifest.isInside(relative) else { throw .badBlob(file: name, offset: 0, .unsafePath) }
            let path = Manifest.directory(of: modelPath) + relative
            guard FileBytes.exists(path) else { throw .badBlob(file: name, offset: 0, .noSuchFile) }
            files[name] = try FileBytes(mapping: path)
        }
        return files
    }

    public func blob(fileName: String, offset: UInt64) throws(FormatError) -> Blob {
        let file: FileBytes? =
            switch weights {
            case .files(let files): files[fileName]
            case .memory(let file): file
            case .none: nil
            }
        guard let file else { throw .badBlob(file: fileName, offset: offset, .noSuchFile) }
        return try Blob(file, name: fileName, offset: offset)
    }

    /// The function of that name; the default one for nil. It has a body for its opset.
    public func function(named name: String? = nil) throws(FormatError) -> Function {
        let program = try model.program
        let name = name ?? model.defaultFunctionName
        guard let function = program.functions[name] else {
            throw .noSuchFunction(name, available: program.functions.keys.sorted())
        }
        guard function.body != nil else { throw .noBody(function: name, opset: function.opset) }
        return function
    }
}

extension Model {
    /// The ML Program, or an error that names the kind of model that this is.
    public var program: Program {
        get throws(FormatError) {
            switch content {
            case .program(let program): return program
            case .other(let kind): throw .unsupportedKind("\(kind)")
            }
        }
    }

    /// What the file says, else `main`, else the only function that there is.
    public var defaultFunctionName: String {
        if !description.defaultFunctionName.isEmpty { return description.defaultFunctionName }
        guard case .program(let program) = content, program.functions["main"] == nil,
            program.functions.count == 1, let only = program.functions.keys.first
        else { return "main" }
        return only
    }

    /// The features of the function of that name; of the default one for nil.
    public func functionDescription(named name: String? = nil) throws(FormatError) -> FunctionDescription {
        let name = name ?? defaultFunctionName
        if !description.isMultifunction, name == defaultFunctionName, let only = description.functions.first {
            return only
        }
        guard let function = description.functions.first(where: { $0.name == name }) else {
            throw .noSuchFunction(name, available: description.functions.map(\.name).sorted())
        }
        return function
    }

    /// Every weight file that the program's constants name.
    fileprivate var blobFileNames: Set<String> {
        guard case .program(let program) = content else { return [] }
        var names: Set<String> = []
        for function in program.functions.values {
            for block in function.specializations.values { block.collectBlobFileNames(&names) }
        }
        return names
    }
}

extension Block {
    fileprivate func collectBlobFileNames(_ names: inout Set<String>) {
        for operation in operations {
            for value in operation.attributes.values { value.collectBlobFileNames(&names) }
            for case .value(let value) in operation.inputs.values.joined() { value.collectBlobFileNames(&names) }
            for block in operation.blocks { block.collectBlobFileNames(&names) }
        }
    }
}

extension Value {
    fileprivate func collectBlobFileNames(_ names: inout Set<String>) {
        switch payload {
        case .blob(let fileName, _): names.insert(fileName)
        case .tuple(let values), .list(let values):
            for value in values { value.collectBlobFileNames(&names) }
        case .dictionary(let pairs):
            for pair in pairs {
                pair.key.collectBlobFileNames(&names)
                pair.value.collectBlobFileNames(&names)
            }
        case .floats, .doubles, .ints, .longInts, .bools, .strings, .bytes: break
        }
    }
}
