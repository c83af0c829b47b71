// MLModelAsset: a model in memory or on disk that is not loaded yet.
import Foundation
import MILFormat

open class MLModelAsset: NSObject {
    let package: Package

    private init(_ package: Package) { self.package = package }

    public convenience init(specification specificationData: Data) throws {
        try self.init(specification: specificationData, files: [:])
    }

    /// `blobMapping` holds the bytes of each weight file by the URL that the program's constants name.
    @available(macOS 15, iOS 18, *)
    public convenience init(specification specificationData: Data, blobMapping: [URL: Data]) throws {
        var files: [String: Data] = [:]
        for (url, data) in blobMapping {
            files[url.absoluteString.removingPercentEncoding ?? url.absoluteString] = data
        }
        try self.init(specification: specificationData, files: files)
    }

    private convenience init(specification: Data, files: [String: Data]) throws {
        do {
            self.init(try Package(model: specification, weightFiles: files))
        } catch {
            throw MLModelError(error)
        }
    }

    @available(macOS 15, iOS 18, *)
    public convenience init(url compiledModelURL: URL) throws {
        self.init(try Package(compiledAt: compiledModelURL))
    }

    @available(macOS 15, iOS 18, *)
    public var modelDescription: MLModelDescription {
        get async throws { try Engine(package, functionName: nil).description }
    }

    @available(macOS 15, iOS 18, *)
    public func modelDescription(of functionName: String) async throws -> MLModelDescription {
        try Engine(package, functionName: functionName).description
    }

    /// Empty unless the model has several functions.
    @available(macOS 15, iOS 18, *)
    public var functionNames: [String] {
        get async throws { Self.functionNames(package) }
    }

    // MARK: With handlers

    @available(macOS 15, iOS 18, *)
    public func modelDescription(completionHandler handler: @escaping (MLModelDescription?, (any Error)?) -> Void) {
        answer(handler) { try Engine($0, functionName: nil).description }
    }

    @available(macOS 15, iOS 18, *)
    public func modelDescription(
        ofFunctionNamed functionName: String,
        completionHandler handler: @escaping (MLModelDescription?, (any Error)?) -> Void
    ) {
        answer(handler) { try Engine($0, functionName: functionName).description }
    }

    @available(macOS 15, iOS 18, *)
    public func functionNames(completionHandler handler: @escaping ([String]?, (any Error)?) -> Void) {
        answer(handler) { Self.functionNames($0) }
    }

    private func answer<T>(_ handler: @escaping (T?, (any Error)?) -> Void, _ value: @escaping (Package) throws -> T) {
        onBackground { [package] in
            do {
                handler(try value(package), nil)
            } catch {
                handler(nil, error)
            }
        }
    }

    private static func functionNames(_ package: Package) -> [String] {
        let description = package.model.description
        return description.isMultifunction ? description.functions.map(\.name) : []
    }
}
