// A Core ML package opened for reading: its model decoded, its weight files mapped.

import Foundation

/// A model with its weight files, from an `.mlpackage` directory, a bare model file, or memory.
public final class Package: BlobSource, Sendable {
    public let model: Model
    let modelBytes: FileBytes
    /// By the names that the program's constants use.
    let weightFiles: [String: FileBytes]

    /// Opens an `.mlpackage` directory or a bare model file.
    ///
    /// The model is decoded at once. Large files are mapped and must not be changed while the package lives; one that
    /// is shortened all the same is an error of `verify`.
    public convenience init(contentsOf path: String) throws(FormatError) {
        let modelPath = try FileBytes.isDirectory(path) ? Manifest(package: path).modelPath : path
        try self.init(modelBytes: FileBytes(contentsOf: modelPath)) { (name) throws(FormatError) in
            let path = Manifest.directory(of: modelPath) + Self.relativePath(ofWeights: name)
            guard FileBytes.exists(path) else { throw .badBlob(file: name, offset: 0, .noSuchFile) }
            return try FileBytes(contentsOf: path)
        }
    }

    /// Reads the bytes of `model.mlmodel` and of the weight file that all its constants name. Both are copied.
    public convenience init(model: UnsafeRawBufferPointer, weights: UnsafeRawBufferPointer?) throws(FormatError) {
        let weights = weights.map(FileBytes.init(copying:))
        try self.init(modelBytes: FileBytes(copying: model)) { (_) throws(FormatError) in weights }
    }

    /// The same with several weight files, by the names that the constants use.
    public convenience init(model: Data, weightFiles: [String: Data]) throws(FormatError) {
        try self.init(modelBytes: FileBytes(copying: model)) { (name) throws(FormatError) in
            weightFiles[name].map(FileBytes.init(copying:))
        }
    }

    private init(
        modelBytes: FileBytes, weights: (String) throws(FormatError) -> FileBytes?
    ) throws(FormatError) {
        model = try modelBytes.withBuffer { (bytes) throws(FormatError) in try Model(decoding: bytes) }
        guard modelBytes.isWhole else { throw .shortened(file: "model") }
        self.modelBytes = modelBytes
        var files: [String: FileBytes] = [:]
        for name in model.blobFileNames {
            guard Manifest.isInside(Self.relativePath(ofWeights: name)) else {
                throw .badBlob(file: name, offset: 0, .unsafePath)
            }
            guard let file = try weights(name) else { throw .badBlob(file: name, offset: 0, .noSuchFile) }
            files[name] = file
        }
        weightFiles = files
    }

    /// The model and the weight files, by name: everything that the package's meaning hangs on.
    public func forEachFile(_ body: (_ name: String, _ bytes: UnsafeRawBufferPointer) -> Void) {
        modelBytes.withBuffer { body("model", $0) }
        for (name, file) in weightFiles.sorted(by: { $0.key < $1.key }) { file.withBuffer { body(name, $0) } }
    }

    /// The path from the model file's directory.
    static func relativePath(ofWeights name: String) -> String {
        let prefix = "@model_path/"
        return name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : name
    }

    public func blob(fileName: String, offset: UInt64) throws(FormatError) -> Blob {
        guard let file = weightFiles[fileName] else {
            throw .badBlob(file: fileName, offset: offset, .noSuchFile)
        }
        return try Blob(file, name: fileName, offset: offset)
    }

    public func verify() throws(FormatError) {
        for (name, file) in weightFiles where !file.isWhole { throw .shortened(file: name) }
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
            case .network: throw .unsupportedKind("\(ModelKind.neuralNetwork)")
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
