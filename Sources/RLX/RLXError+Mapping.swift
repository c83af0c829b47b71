// Errors of the rooms below in the terms of the public error.

import MILFormat
import MILRuntime

extension RLXError {
    init(_ error: FormatError) {
        let code: Code =
            switch error {
            case .io, .shortened: .io
            case .unsupportedKind: .unsupported
            case .noSuchFunction: .notFound
            case .notAPackage, .malformed, .nestedTooDeeply, .missing, .unknownValue, .constantMismatch, .noBody,
                .badBlob:
                .badPackage
            }
        self.init(code, error.description, subject: error.subject)
    }

    init(_ error: RuntimeError) {
        let code: Code =
            switch error {
            case .unsupported: .unsupported
            case .invalid, .unreadableConstant: .badPackage
            case .badOption: .invalidArgument
            case .outOfRange, .indexOutOfRange: .badFeed
            case .outOfMemory: .outOfMemory
            case .unreadableWeights: .io
            case .outOfTime: .timeLimit
            case .stopped: .interrupted
            }
        self.init(code, error.description, subject: error.subject)
    }
}
