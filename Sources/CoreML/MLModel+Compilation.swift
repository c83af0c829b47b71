// Compiling: here a checked copy, in a directory of the name that Core ML would give it.
import Foundation
import MILFormat

extension MLModel {
    /// From an `.mlpackage` or `.mlmodel`; the result is in a temporary directory: move it to keep it.
    public class func compileModel(at modelURL: URL) throws -> URL {
        let name = modelURL.deletingPathExtension().lastPathComponent
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent(UUID().uuidString, isDirectory: true)
        let target = directory.appendingPathComponent(name + ".mlmodelc", isDirectory: true)
        do {
            let package = try Package(contentsOf: modelURL.path)
            if case .network = package.model.content { _ = try Engine(package, functionName: nil) }
            if package.model.isUpdatable { _ = try UpdatableNetwork(package.model) }
            try package.write(to: target.path)
        } catch let error as FormatError {
            throw MLModelError(error)
        }
        return target
    }

    public class func compileModel(at url: URL) async throws -> URL {
        try compiled(url)
    }

    public class func compileModel(
        at url: URL, completionHandler handler: @escaping (Result<URL, any Error>) -> Void
    ) {
        onBackground { handler(Result { try compiled(url) }) }
    }

    /// Picks the synchronous form.
    private class func compiled(_ url: URL) throws -> URL { try compileModel(at: url) }
}
