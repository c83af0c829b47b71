// A profile as JSON for clients that do not link Swift: the only description of that text is in rlx.h.

import Foundation
import MILRuntime

extension Profile {
    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(Text(self)), as: UTF8.self)
    }
}

private struct Text: Encodable {
    struct Operation: Encodable {
        let type: String
        let output: String
    }

    struct Step: Encodable {
        let operations: [Operation]
        let calls: Int
        let nanoseconds: Double
        let flops: Double
        let bytes: Int
    }

    let nanoseconds: Double
    let steps: [Step]

    init(_ profile: Profile) {
        nanoseconds = profile.duration.nanoseconds
        steps = profile.steps.map { step in
            Step(
                operations: step.operations.map { Operation(type: $0.type, output: $0.output) }, calls: step.calls,
                nanoseconds: step.duration.nanoseconds, flops: step.flops, bytes: step.bytes)
        }
    }
}

extension Duration {
    fileprivate var nanoseconds: Double { self / .nanoseconds(1) }
}
