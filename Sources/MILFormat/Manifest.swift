// Manifest.json, the table of contents of an `.mlpackage` directory. Knows paths, not models.

import Foundation

struct Manifest {
    /// The root model's file.
    let modelPath: String

    private struct File: Decodable {
        struct Item: Decodable { let path: String }
        let rootModelIdentifier: String
        let itemInfoEntries: [String: Item]
    }

    init(package: String) throws(FormatError) {
        let directory = package.hasSuffix("/") ? package : package + "/"
        let path = directory + "Manifest.json"
        guard FileBytes.exists(path) else {
            let isCompiled = FileBytes.exists(directory + "coremldata.bin")
            throw .notAPackage(path: package, isCompiled ? .compiledByApple : .noManifest)
        }
        let bytes = try FileBytes(contentsOf: path).withBuffer { Data($0) }
        let file: File
        do {
            file = try JSONDecoder().decode(File.self, from: bytes)
        } catch {
            throw .notAPackage(path: package, .badManifest("\(error)"))
        }
        guard let item = file.itemInfoEntries[file.rootModelIdentifier] else {
            throw .notAPackage(path: package, .noModelItem)
        }
        guard Self.isInside(item.path) else { throw .notAPackage(path: package, .unsafePath(item.path)) }
        modelPath = directory + "Data/" + item.path
    }

    /// Whether a relative path stays below the directory that it starts from.
    static func isInside(_ path: String) -> Bool {
        !path.hasPrefix("/") && !path.contains("\0") && !path.split(separator: "/").contains("..")
    }

    /// The path up to and with its last slash; "" for a bare file name.
    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return String(path[...slash])
    }
}
