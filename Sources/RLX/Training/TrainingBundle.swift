// A training bundle on disk: opened, compared with its manifest's hashes. Runs nothing.

import Foundation

/// A bundle that is whole. Its files must not change while a session of it lives.
struct TrainingBundle: Sendable {
    let url: URL
    let manifest: BundleManifest

    /// Throws `io` for what cannot be read, and `badPackage` with the place in the manifest or the file at fault.
    init(contentsOf url: URL) throws(RLXError) {
        self.url = url
        let data = try Self.read(url.appendingPathComponent("manifest.json"))
        let version = try Self.decoded(BundleManifest.Version.self, data)
        guard version.format == BundleManifest.format else {
            throw .badManifest("format", "expected \(BundleManifest.format), got \(version.format)")
        }
        manifest = try Self.decoded(BundleManifest.self, data)
        try manifest.check()
        for (path, hash) in manifest.files.sorted(by: { $0.key < $1.key }) {
            guard sha256Hex(try Self.read(file(path))) == hash else {
                throw RLXError(.badPackage, "'\(path)' of the bundle has been changed or damaged", subject: path)
            }
        }
    }

    func file(_ path: String) -> URL { url.appendingPathComponent(path) }

    /// The program of that kind in one of the manifest's forms, with its features as the manifest says.
    func program(_ name: String, form: Int) throws(RLXError) -> (BundleManifest.Program, LoadedProgram) {
        guard let described = manifest.forms[form].programs[name] else {
            throw .badManifest("programs", "there is no '\(name)'")
        }
        return (described, try LoadedProgram(contentsOf: file(described.file).path))
    }

    static func read(_ url: URL) throws(RLXError) -> Data {
        do {
            return try Data(contentsOf: url, options: .mappedIfSafe)
        } catch {
            throw RLXError(
                .io, "'\(url.path)' cannot be read", subject: url.lastPathComponent, detail: "\(error)")
        }
    }

    private static func decoded<T: Decodable>(_ type: T.Type, _ data: Data) throws(RLXError) -> T {
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            throw .undecodable("manifest.json", error)
        }
    }
}
