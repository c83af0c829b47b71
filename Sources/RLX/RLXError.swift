// The one error type of the public library, and the only wording of what the library itself finds wrong.

/// Why a call failed: a code to act on, a sentence to show, and the thing at fault.
public struct RLXError: Error, Sendable, Hashable {
    /// Raw values are those of `rlx_status` in `rlx.h`.
    public enum Code: Int32, Sendable, CaseIterable {
        /// An argument or a call out of its turn.
        case invalidArgument = 1
        /// A tensor of another shape than is needed.
        case badShape
        /// A tensor of another element type than is needed.
        case badDType
        /// A name that is not there.
        case notFound
        /// A file that is damaged or of another kind.
        case badPackage
        /// An operation or feature that is not there.
        case unsupported
        /// A value that is out of its range.
        case badFeed
        /// A file that cannot be read or written.
        case io
        /// There is not enough memory.
        case outOfMemory
        /// A device that is not here.
        case unavailable
        /// A fault of this library.
        case `internal`
        /// A prediction that took longer than it was allowed to.
        case timeLimit
        /// A call that was asked to stop.
        case interrupted
        /// A call that would have to wait for another one, made in the middle of one.
        case busy
    }

    /// What kind of fault it is.
    public let code: Code
    /// What is wrong and what to do.
    public let message: String
    /// Foreign text kept whole, or "".
    public let detail: String
    /// The feature, operation or file at fault, or "".
    public let subject: String

    /// For code around the library that fails in the same ways.
    public init(_ code: Code, _ message: String, subject: String = "", detail: String = "") {
        self.code = code
        self.message = message
        self.detail = detail
        self.subject = subject
    }
}

extension RLXError: CustomStringConvertible {
    public var description: String { detail.isEmpty ? message : "\(message)\n\(detail)" }
}

extension RLXError {
    package static func noSuchFeature(_ name: String, among names: [String]) -> RLXError {
        let known = names.sorted().map { "'\($0)'" }.joined(separator: ", ")
        return RLXError(.notFound, "there is no feature '\(name)'; there are \(known)", subject: name)
    }

    static func noSuchFunction(_ name: String, among names: [String]) -> RLXError {
        let known = names.sorted().map { "'\($0)'" }.joined(separator: ", ")
        return RLXError(.notFound, "there is no function '\(name)'; there are \(known)", subject: name)
    }

    static func missingFeed(_ name: String) -> RLXError {
        RLXError(.notFound, "the input '\(name)' is not given", subject: name)
    }

    static func noSuchTensor(_ name: String) -> RLXError {
        RLXError(.notFound, "the store holds no tensor '\(name)'; put it first", subject: name)
    }

    static func shapeMismatch(_ name: String, expected: [Int], got: [Int]) -> RLXError {
        RLXError(.badShape, "'\(name)' has shape \(expected.text), not \(got.text)", subject: name)
    }

    static func dtypeMismatch(_ name: String, expected: DType, got: DType) -> RLXError {
        RLXError(.badDType, "'\(name)' is \(expected), not \(got)", subject: name)
    }

    static func notATensor(_ name: String, _ type: String) -> RLXError {
        RLXError(
            .unsupported,
            "the feature '\(name)' is \(type); only tensors of fixed shape and type f16, f32, i32 or bool are bound",
            subject: name)
    }

    static func duplicate(_ role: String, _ name: String) -> RLXError {
        RLXError(.invalidArgument, "'\(name)' is the \(role) of more than one pair", subject: name)
    }

    static func rangeNeedsIntegers(_ name: String, _ dtype: DType) -> RLXError {
        RLXError(.badDType, "a range was set for '\(name)', which is \(dtype) and not i32", subject: name)
    }

    static func outOfRange(
        _ name: String, value: Int32, index: Int, range: Range<Int32>, besides: Set<Int32> = []
    ) -> RLXError {
        let also = besides.sorted().map { " or \($0)" }.joined()
        return RLXError(
            .badFeed,
            "input '\(name)': expected indices from \(range.lowerBound) to \(Int(range.upperBound) - 1)\(also), "
                + "got \(value) at element \(index)",
            subject: name)
    }

    static func wrongSize(_ feature: Feature, bytes: Int) -> RLXError {
        RLXError(
            .badShape, "'\(feature.name)' takes \(feature.dtype) of shape \(feature.shape.text), got \(bytes) bytes",
            subject: feature.name)
    }

    static func tooLarge(_ shape: [Int]) -> RLXError {
        RLXError(.badShape, "a tensor of shape \(shape.text) does not fit into memory")
    }

    static func scalarCount(expected: Int, got: Int, shape: [Int]) -> RLXError {
        RLXError(.badShape, "a tensor of shape \(shape.text) has \(expected) scalars, not \(got)")
    }
}

extension [Int] {
    /// As Python writes a shape.
    package var text: String {
        count == 1 ? "(\(self[0]),)" : "(" + map(String.init).joined(separator: ", ") + ")"
    }
}
