// Writing a file so that it is there whole after a crash, and readable by the app whenever it runs in the background.

import Foundation

/// Writes under another name, to the disk, and then renames.
func writeDurably(_ data: Data, to url: URL) throws {
    let folder = url.deletingLastPathComponent()
    let beside = folder.appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString).tmp")
    do {
        try data.write(to: beside, options: protectedUntilFirstUnlock)
        let handle = try FileHandle(forWritingTo: beside)
        try handle.synchronize()
        try handle.close()
        guard rename(beside.path, url.path) == 0 else {
            throw NSError(domain: NSPOSIXErrorDomain, code: Int(errno))
        }
    } catch {
        try? FileManager.default.removeItem(at: beside)
        throw error
    }
}

/// A training run goes on behind a locked screen, which the stricter classes forbid.
private var protectedUntilFirstUnlock: Data.WritingOptions {
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
    .completeFileProtectionUntilFirstUserAuthentication
    #else
    []
    #endif
}
