// Bytes that stay in one place as long as their owner lives: a mapped file or a private copy. Knows no format.

import Foundation
import MappedFile

/// Read-only memory. Small files are read; a large one is mapped, and `isWhole` tells when it was shortened since.
final class FileBytes: @unchecked Sendable {
    let buffer: UnsafeRawBufferPointer
    private let mapping: OpaquePointer?

    /// Larger files are mapped.
    private static let largestCopy = 32 << 20

    init(contentsOf path: String) throws(FormatError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .io(path: path, code: errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .io(path: path, code: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notAPackage(path: path, .notAFile) }
        let size = Int(clamping: status.st_size)
        if size > Self.largestCopy {
            guard let mapping = mapped_file_open(descriptor, size) else { throw .io(path: path, code: errno) }
            self.mapping = mapping
            buffer = UnsafeRawBufferPointer(start: mapped_file_bytes(mapping), count: size)
            return
        }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(size, 0), alignment: 64)
        var filled = 0
        while filled < copy.count {
            let count = read(descriptor, copy.baseAddress.map { $0 + filled }, copy.count - filled)
            guard count > 0 else {
                copy.deallocate()
                throw .io(path: path, code: count < 0 ? errno : EIO)
            }
            filled += count
        }
        buffer = UnsafeRawBufferPointer(copy)
        mapping = nil
    }

    init(copying source: some Collection<UInt8>) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: source.count, alignment: 64)
        copy.copyBytes(from: source)
        buffer = UnsafeRawBufferPointer(copy)
        mapping = nil
    }

    deinit {
        if let mapping { mapped_file_close(mapping) } else { buffer.deallocate() }
    }

    /// False once something was read that the file does not have any more: zeros stood in its place.
    var isWhole: Bool { mapping.map { mapped_file_is_whole($0) } ?? true }

    /// Whoever keeps no reference of its own reads in here.
    func withBuffer<R, E>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try withExtendedLifetime(self) { () throws(E) in try body(buffer) }
    }

    /// Whether the path is a directory; an error when there is nothing.
    static func isDirectory(_ path: String) throws(FormatError) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .io(path: path, code: errno) }
        return status.st_mode & S_IFMT == S_IFDIR
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Makes a new file of the bytes; what is there already is not overwritten.
    func write(to path: String) throws(FormatError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw .io(path: path, code: errno) }
        defer { close(descriptor) }
        try withBuffer { (bytes) throws(FormatError) in
            var rest = bytes
            while !rest.isEmpty {
                let written = Foundation.write(descriptor, rest.baseAddress, rest.count)
                guard written > 0 else { throw .io(path: path, code: errno) }
                rest = UnsafeRawBufferPointer(rebasing: rest[written...])
            }
        }
    }

    /// Makes all directories of the path that are not there; it ends in a slash.
    static func makeDirectory(_ path: String) throws(FormatError) {
        for slash in path.indices where path[slash] == "/" && slash > path.startIndex {
            let parent = String(path[..<slash])
            guard mkdir(parent, 0o777) == 0 || errno == EEXIST else { throw .io(path: parent, code: errno) }
        }
    }
}
