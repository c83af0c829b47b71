// The stored bundle, its run as Python made it, and folders that are gone after a test.
import Foundation
@testable import RLX

enum Bundles {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Bundles")

    static let url = folder.appendingPathComponent("dropout.rlxbundle")

    static func golden() throws -> Golden {
        try JSONDecoder().decode(Golden.self, from: Data(contentsOf: folder.appendingPathComponent("golden.json")))
    }

    /// A copy that a test may damage.
    static func copy(into folder: Scratch) throws -> URL {
        let copy = folder.url("copy.rlxbundle")
        try FileManager.default.copyItem(at: url, to: copy)
        return copy
    }
}

/// `Bundles/make.py` says what it is.
struct Golden: Decodable {
    let kernel: String
    let x: [[Float]]
    let y: [[Int32]]
    let losses: [Double]
    let evaluate: Double
    let params: [String: [Float]]
    let averages: [String: [Float]]
    let lr: Double

    func batches() throws -> [Batch] {
        try zip(x, y).map { ["x": try Tensor($0, shape: [6, 4]), "y": try Tensor($1, shape: [6])] }
    }

    /// How far numbers may be off: the kernels' bits are the same only where they were compiled alike.
    var tolerance: Double {
        #if DEBUG
        1e-5
        #else
        kernel == "cpu \(RLXLibrary.instructionSet)" ? 0 : 1e-5
        #endif
    }
}

final class Scratch: Sendable {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("rlx-test-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func url(_ name: String) -> URL { folder.appendingPathComponent(name) }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted() }
}
