// Bytes that stay in one place as long as their owner lives: a mapped file or a private copy. Knows no format.

import Foundation

/// Read-only memory. Small files are read; a large one is mapped, and must not be shortened while it is in use: what
/// then is missing ends the process when it is read.
final class FileBytes: @unchecked Sendable {
    let buffer: UnsafeRawBufferPointer
    private let isMapped: Bool

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
            let address = mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0)
            guard address != MAP_FAILED, let address else { throw .io(path: path, code: errno) }
            buffer = UnsafeRawBufferPointer(start: address, count: size)
            isMapped = true
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
        isMapped = false
    }

    init(copying source: some Collection<UInt8>) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: source.count, alignment: 64)
        copy.copyBytes(from: source)
        buffer = UnsafeRawBufferPointer(copy)
        isMapped = false
    }

    deinit {
        guard isMapped else { return buffer.deallocate() }
        if let address = UnsafeMutableRawPointer(mutating: buffer.baseAddress) { munmap(address, buffer.count) }
    }

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
