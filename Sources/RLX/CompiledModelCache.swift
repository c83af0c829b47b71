// Compiled models kept on disk by the content of their package and the system that compiled them. Runs nothing.

import CoreML
import Foundation
import MILFormat

/// A folder of compiled models, shared by processes. Whatever is wrong with it, models are compiled anew.
///
/// An entry that does not load (another chip, a damaged copy) is thrown away and made again. Entries of other
/// builds of the system, and the least recently used beyond a limit, are removed.
struct CompiledModelCache: Sendable {
    /// What loading a model through the cache did; for tests and reports.
    enum Outcome: Sendable, Hashable { case found, compiled, replacedStale }

    /// How many entries stay at most, and how long one stays that a process may still have mapped.
    static let limit = 32
    static let shortestStay: TimeInterval = 24 * 60 * 60

    private let root: URL
    private let system: String

    /// `system` names the build of the operating system: what one compiled, another may not load.
    init(root: URL, system: String = ProcessInfo.processInfo.operatingSystemVersionString) {
        self.root = root
        self.system = String(system.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    }

    #if canImport(Darwin)
    /// The user's cache folder.
    static var standard: CompiledModelCache? {
        FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first.map {
            CompiledModelCache(root: $0.appendingPathComponent("rlx.compiled", isDirectory: true))
        }
    }
    #else
    /// None: what stands in for Core ML compiles by copying. Tests give one.
    static var standard: CompiledModelCache? { current }
    @TaskLocal static var current: CompiledModelCache?
    #endif

    /// The compiled model of a package, loaded.
    func model(
        of package: Package, compile: () throws -> URL, load: (URL) throws -> MLModel
    ) throws -> (MLModel, Outcome) {
        let entry = folder.appendingPathComponent(package.contentHash + ".mlmodelc", isDirectory: true)
        var outcome = Outcome.compiled
        if FileManager.default.fileExists(atPath: entry.path) {
            if let model = try? load(entry) {
                try? FileManager.default.setAttributes([.modificationDate: Date()], ofItemAtPath: entry.path)
                return (model, .found)
            }
            try? FileManager.default.removeItem(at: entry)
            outcome = .replacedStale
        }
        return (try load(keep(try compile(), as: entry)), outcome)
    }

    private var folder: URL { root.appendingPathComponent(system, isDirectory: true) }

    /// Where the model is now: in the cache, or where it was if it cannot be moved there.
    private func keep(_ compiled: URL, as entry: URL) -> URL {
        let files = FileManager.default
        do {
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
            try files.moveItem(at: compiled, to: entry)
        } catch {
            // Another process may have been faster.
            return files.fileExists(atPath: entry.path) ? entry : compiled
        }
        clean()
        return entry
    }

    private func clean() {
        let files = FileManager.default
        for other in (try? files.contentsOfDirectory(atPath: root.path)) ?? [] where other != system {
            try? files.removeItem(at: root.appendingPathComponent(other))
        }
        let entries = ((try? files.contentsOfDirectory(atPath: folder.path)) ?? []).map { name in
            let url = folder.appendingPathComponent(name)
            let date = (try? files.attributesOfItem(atPath: url.path))?[.modificationDate] as? Date
            return (url: url, used: date ?? .distantPast)
        }
        let old = Date(timeIntervalSinceNow: -Self.shortestStay)
        for entry in entries.sorted(by: { $0.used > $1.used }).dropFirst(Self.limit) where entry.used < old {
            try? files.removeItem(at: entry.url)
        }
    }
}

extension Package {
    /// The same for the same bytes under the same names.
    fileprivate var contentHash: String {
        var lines = ""
        forEachFile { name, bytes in
            guard let base = bytes.baseAddress else { return lines += name + "\n" }
            let data = Data(
                bytesNoCopy: UnsafeMutableRawPointer(mutating: base), count: bytes.count, deallocator: .none)
            lines += "\(name) \(sha256Hex(data))\n"
        }
        return sha256Hex(Data(lines.utf8))
    }
}
