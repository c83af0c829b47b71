// Switches that make this module behave as badly as Core ML may, so that tests can find who relies on kindness.
import Foundation

/// Read when a model is loaded.
package struct Unkindness: Sendable {
    /// Output rows take a multiple of 64 bytes, so 200 halves become 224.
    package var padsRows = false
    /// Outputs never land in the arrays that the caller offers.
    package var ignoresBackings = false

    package init(padsRows: Bool = false, ignoresBackings: Bool = false) {
        self.padsRows = padsRows
        self.ignoresBackings = ignoresBackings
    }

    /// `RLX_COREML_PAD_ROWS=1` and `RLX_COREML_IGNORE_BACKINGS=1`, unless a test says otherwise.
    @TaskLocal package static var current = fromEnvironment

    /// What predictions fail with, if they are to fail.
    @TaskLocal package static var failure: MLModelError?

    private static var fromEnvironment: Unkindness {
        let environment = ProcessInfo.processInfo.environment
        return Unkindness(
            padsRows: environment["RLX_COREML_PAD_ROWS"] == "1",
            ignoresBackings: environment["RLX_COREML_IGNORE_BACKINGS"] == "1")
    }
}
