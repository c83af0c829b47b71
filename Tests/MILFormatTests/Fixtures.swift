// Where the stored packages are, and shorthands to look into a program.
import Foundation
import MILFormat

enum Fixture {
    static let names = [
        "blobs", "classifier", "control", "enumerated", "flexible", "functions", "linear16", "linear32", "linreg",
        "state", "subbyte", "swap",
    ]

    static let modelPath = "/Data/com.apple.CoreML/model.mlmodel"
    static let weightPath = "/Data/com.apple.CoreML/weights/weight.bin"

    static func path(_ name: String) -> String {
        let directory = Bundle.module.resourceURL?.appendingPathComponent("Fixtures").path ?? "Fixtures"
        return directory + "/" + name + (name.contains(".") ? "" : ".mlpackage")
    }

    static func package(_ name: String) throws -> Package { try Package(contentsOf: path(name)) }

    static func modelBytes(_ name: String) throws -> [UInt8] {
        try bytes(path(name) + (name.hasSuffix(".mlmodel") ? "" : modelPath))
    }

    static func weightBytes(_ name: String) throws -> [UInt8]? {
        let file = path(name) + weightPath
        return FileManager.default.fileExists(atPath: file) ? try bytes(file) : nil
    }

    static func bytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    static func package(model: [UInt8], weights: [UInt8]?) throws -> Package {
        try model.withUnsafeBytes { model in
            guard let weights else { return try Package(model: model, weights: nil) }
            return try weights.withUnsafeBytes { try Package(model: model, weights: $0) }
        }
    }
}

extension Function {
    /// The `const` that makes the value of that name.
    func constant(_ name: String) -> Value? {
        body?.operations.first { $0.type == "const" && $0.outputs.first?.name == name }?.attributes["val"]
    }

    func operation(_ type: String) -> MILFormat.Operation? { body?.operations.first { $0.type == type } }
}

extension Package {
    func elements<T>(_ value: Value?, as type: T.Type) throws -> [T] {
        guard case .blob(let file, let offset) = value?.payload else { return [] }
        let blob = try blob(fileName: file, offset: offset)
        return Array(blob.bytes.bindMemory(to: T.self).prefix(blob.count))
    }
}
