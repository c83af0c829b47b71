// The model to deploy: a bundle's own with other values in its files. The same values give the same bytes.

import Foundation

extension TrainingRun {
    /// Writes the inference form with the present weights inside, whole or not at all; some may be others.
    func export(to url: URL, with others: [String: Tensor]) throws(RLXError) {
        let model = bundle.manifest.model
        let folder = bundle.file(model.file).appendingPathComponent(ModelFiles.folder)
        var files = ModelFiles(
            model: try TrainingBundle.read(folder.appendingPathComponent(ModelFiles.model)),
            weights: (try? Data(contentsOf: folder.appendingPathComponent(ModelFiles.weights))) ?? Data())
        for (name, place) in model.places {
            let tensor = if let other = others[name] { other } else { try value(name) }
            switch place.file {
            case .model: try files.model.put(tensor.bytes, at: place.offset, name)
            case .weights: try files.weights.put(tensor.bytes, at: place.offset, name)
            }
        }
        do {
            try files.write(to: url)
        } catch {
            throw RLXError(.io, "'\(url.path)' cannot be written", subject: url.lastPathComponent, detail: "\(error)")
        }
    }
}

extension Data {
    fileprivate mutating func put(_ bytes: [UInt8], at offset: Int, _ name: String) throws(RLXError) {
        guard offset >= 0, offset <= count, bytes.count <= count - offset else {
            throw .badManifest("model.places.\(name)", "it is not inside of the file")
        }
        replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }
}

/// A package of one model with one weight file, which may be empty.
private struct ModelFiles {
    static let folder = "Data/com.apple.CoreML"
    static let model = "model.mlmodel"
    static let weights = "weights/weight.bin"
    var model: Data
    var weights: Data

    func write(to url: URL) throws {
        let files = FileManager.default
        let parent = url.deletingLastPathComponent()
        let beside = parent.appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString).tmp")
        defer { try? files.removeItem(at: beside) }
        let folder = beside.appendingPathComponent(Self.folder)
        try files.createDirectory(at: folder.appendingPathComponent("weights"), withIntermediateDirectories: true)
        try writeDurably(model, to: folder.appendingPathComponent(Self.model))
        if !weights.isEmpty { try writeDurably(weights, to: folder.appendingPathComponent(Self.weights)) }
        try writeDurably(Data(manifest.utf8), to: beside.appendingPathComponent("Manifest.json"))
        if files.fileExists(atPath: url.path) {
            guard files.fileExists(atPath: url.appendingPathComponent("Manifest.json").path) else {
                throw RLXError(.io, "something that is no package is there already", subject: url.lastPathComponent)
            }
            try files.removeItem(at: url)
        }
        try files.moveItem(at: beside, to: url)
    }

    /// Item identifiers come from the contents.
    private var manifest: String {
        let digest = sha256Hex(model + weights)
        let items = [
            (id(digest, "model"), "com.apple.CoreML/model.mlmodel", "model.mlmodel", "CoreML Model Specification"),
            (id(digest, "weights"), "com.apple.CoreML/weights", "weights", "CoreML Model Weights"),
        ]
        let entries = items.sorted { $0.0 < $1.0 }.map { id, path, name, description in
            """
                    "\(id)": {
                        "author": "com.apple.CoreML",
                        "description": "\(description)",
                        "name": "\(name)",
                        "path": "\(path)"
                    }
            """
        }
        return """
            {
                "fileFormatVersion": "1.0.0",
                "itemInfoEntries": {
            \(entries.joined(separator: ",\n"))
                },
                "rootModelIdentifier": "\(items[0].0)"
            }

            """
    }

    private func id(_ digest: String, _ item: String) -> String {
        let hash = Array(sha256Hex(Data("\(digest) \(item)".utf8)).uppercased())
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(hash[$0]) }.joined(separator: "-")
    }
}
