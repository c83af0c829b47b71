// MLModelAsset: a model in memory or on disk that is not loaded yet.
import Foundation
import MILFormat

open class MLModelAsset: NSObject {
    let package: Package

    private init(_ package: Package) { self.package = package }

    public convenience init(specification specificationData: Data) throws {
        try self.init(specification: specificationData, blobMapping: [:])
    }

    /// `blobMapping` holds the bytes of each weight file by the URL that the program's constants name.
    public convenience init(specification specificationData: Data, blobMapping: [URL: Data]) throws {
        var files: [String: Data] = [:]
        for (url, data) in blobMapping {
            files[url.absoluteString.removingPercentEncoding ?? url.absoluteString] = data
        }
        do {
            self.init(try Package(model: specificationData, weightFiles: files))
        } catch {
            throw MLModelError(error)
        }
    }

    public convenience init(url compiledModelURL: URL) throws {
        self.init(try Package(compiledAt: compiledModelURL))
    }

    public var modelDescription: MLModelDescription {
        get async throws { try Engine(package, functionName: nil).description }
    }

    public func modelDescription(of functionName: String) async throws -> MLModelDescription {
        try Engine(package, functionName: functionName).description
    }

    /// Empty unless the model has several functions.
    public var functionNames: [String] {
        get async throws {
            let description = package.model.description
            return description.isMultifunction ? description.functions.map(\.name) : []
        }
    }
}
