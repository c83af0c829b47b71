// Writes a package as a directory, with the file names that coremltools uses.

extension Package {
    /// Makes the directory `path`, which must not exist, an `.mlpackage` of the same bytes.
    public func write(to path: String) throws(FormatError) {
        let folder = path + "/Data/com.apple.CoreML/"
        try FileBytes.makeDirectory(folder + "weights/")
        try modelBytes.write(to: folder + "model.mlmodel")
        for (name, bytes) in weightFiles {
            let target = folder + Self.relativePath(ofWeights: name)
            try FileBytes.makeDirectory(Manifest.directory(of: target))
            try bytes.write(to: target)
        }
        try FileBytes(copying: Manifest.standardText.utf8).write(to: path + "/Manifest.json")
    }
}

extension Manifest {
    /// Fixed identifiers, so that the same model gives the same bytes.
    fileprivate static let standardText = """
        {
            "fileFormatVersion": "1.0.0",
            "itemInfoEntries": {
                "00000000-0000-0000-0000-000000000001": {
                    "author": "com.apple.CoreML",
                    "description": "CoreML Model Specification",
                    "name": "model.mlmodel",
                    "path": "com.apple.CoreML/model.mlmodel"
                },
                "00000000-0000-0000-0000-000000000002": {
                    "author": "com.apple.CoreML",
                    "description": "CoreML Model Weights",
                    "name": "weights",
                    "path": "com.apple.CoreML/weights"
                }
            },
            "rootModelIdentifier": "00000000-0000-0000-0000-000000000001"
        }

        """
}
