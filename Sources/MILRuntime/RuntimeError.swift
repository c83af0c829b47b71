// What can be wrong with a program or with a request to run it: the facts, and the only wording of them.

/// Why a program cannot be planned or run.
public enum RuntimeError: Error, Sendable, Hashable {
    /// A valid program with something that this runtime does not have.
    case unsupported(Missing, Place)
    /// A program that contradicts itself or the rules of MIL.
    case invalid(Fault, Place)
    /// A constant whose data could not be read; `reason` comes from the blob source.
    case unreadableConstant(name: String, reason: String)
    /// Weights changed while they were in use, so that no result can be trusted; `reason` as above.
    case unreadableWeights(reason: String)
    /// A plan option names or describes something that does not fit the function.
    case badOption(OptionFault)
    /// An element of an integer input outside the range that was promised for it; nothing was changed.
    case outOfRange(input: String, index: Int, value: Int32, range: Range<Int32>)
    /// An operation that validates its indices was given one that is out of range; nothing was changed. `index` is its
    /// place among them.
    case indexOutOfRange(Place, index: Int, size: Int)
    case outOfMemory(bytes: Int)
    /// The run took longer than it was allowed to; it was given up in the loop at this place.
    case outOfTime(Place, seconds: Double)
    /// The run was asked to stop; nothing was changed.
    case stopped
}

extension RuntimeError {
    /// Where in a program: an operation by its type and the name of its (first) output, or a name on the boundary.
    public enum Place: Sendable, Hashable {
        case operation(type: String, output: String)
        case boundary(String)
    }

    public enum Missing: Sendable, Hashable {
        case operation
        case type(String)
        case flexibleShape
        case feature(String)
    }

    public enum Fault: Sendable, Hashable {
        case noBody(opset: String)
        case undefinedName(String)
        case redefinedName(String)
        case missingParameter(String)
        case unknownParameter(String)
        case severalBindings(String)
        case notConstant(String)
        case elementType(parameter: String, got: String, expected: String)
        case rank(parameter: String, got: Int, expected: String)
        case shape(parameter: String, got: [Int], expected: String)
        case value(parameter: String, got: String, expected: String)
        case notBroadcastable([Int], [Int])
        case tooLarge([Int])
        case outputCount(declared: Int, expected: Int)
        case declaredType(output: String, declared: String, inferred: String)
        case constantPayload
        case notAState
        case notAList
        case noBlocks(Int)
    }

    public enum OptionFault: Sendable, Hashable {
        case unknownInput(option: String, name: String)
        case unknownOutput(name: String)
        case missingInput(name: String)
        case mismatch(name: String, got: String, expected: String)
        case donatedTwice(name: String)
        case rangeNeedsInt32(name: String)
        case unknownWatched(name: String)
    }

    /// The operation, value or feature at fault, or an empty string.
    public var subject: String {
        switch self {
        case .unsupported(_, let place), .invalid(_, let place): place.subject
        case .unreadableConstant(let name, _): name
        case .badOption(let fault): fault.subject
        case .outOfRange(let input, _, _, _): input
        case .indexOutOfRange(let place, _, _): place.subject
        case .outOfTime(let place, _): place.subject
        case .unreadableWeights, .outOfMemory, .stopped: ""
        }
    }
}

extension RuntimeError.Place: CustomStringConvertible {
    public var description: String {
        switch self {
        case .operation(let type, let output): "\(type) (which makes \"\(output)\")"
        case .boundary(let name): "\"\(name)\""
        }
    }

    var subject: String {
        switch self {
        case .operation(_, let output): output
        case .boundary(let name): name
        }
    }
}

extension RuntimeError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unsupported(let missing, let place):
            switch missing {
            case .operation: "the operation \(place) is not supported by this runtime"
            case .type(let type): "\(place): values of type \(type) are not supported by this runtime"
            case .flexibleShape: "\(place) has a flexible shape; bind its dimensions to numbers before planning"
            case .feature(let text): "\(place): \(text) is not supported by this runtime"
            }
        case .invalid(let fault, let place): "\(place): \(fault)"
        case .unreadableConstant(let name, let reason): "the constant \"\(name)\" cannot be read: \(reason)"
        case .unreadableWeights(let reason): reason
        case .badOption(let fault): fault.description
        case .outOfRange(let input, let index, let value, let range):
            "input \"\(input)\": expected indices from \(range.lowerBound) to \(Int(range.upperBound) - 1), "
                + "got \(value) at element \(index)"
        case .indexOutOfRange(let place, let index, let size):
            "\(place): its index number \(index) is not an index of \(size) elements"
        case .outOfMemory(let bytes): "no memory for \(bytes) bytes"
        case .outOfTime(let place, let seconds): "\(place): the run was given up after its limit of \(seconds) seconds"
        case .stopped: "the run was asked to stop, and did"
        }
    }
}

extension RuntimeError.Fault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .noBody(let opset): "the function has no body for its opset \(opset)"
        case .undefinedName(let name): "no value \"\(name)\" is defined before its use"
        case .redefinedName(let name): "the name \"\(name)\" is defined twice"
        case .missingParameter(let name): "the parameter \(name) is missing"
        case .unknownParameter(let name): "there is no parameter \(name)"
        case .severalBindings(let name): "the parameter \(name) takes one value and has another number of them"
        case .notConstant(let name): "the parameter \(name) must be a constant"
        case .elementType(let parameter, let got, let expected):
            "\(parameter) is of type \(got), expected \(expected)"
        case .rank(let parameter, let got, let expected): "\(parameter) has rank \(got), expected \(expected)"
        case .shape(let parameter, let got, let expected): "\(parameter) has shape \(got), expected \(expected)"
        case .value(let parameter, let got, let expected): "\(parameter) is \(got), expected \(expected)"
        case .notBroadcastable(let a, let b): "the shapes \(a) and \(b) cannot be broadcast together"
        case .tooLarge(let shape): "the shape \(shape) is negative or too large for this machine"
        case .outputCount(let declared, let expected): "it declares \(declared) outputs and makes \(expected)"
        case .declaredType(let output, let declared, let inferred):
            "the output \"\(output)\" is declared as \(declared), but by its inputs it is \(inferred)"
        case .notAState: "its input is no state of the function"
        case .notAList: "the parameter ls is no list"
        case .noBlocks(let count): "it needs \(count) blocks that fit its inputs and outputs"
        case .constantPayload: "its value does not have the elements that its type says"
        }
    }
}

extension RuntimeError.OptionFault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownInput(let option, let name): "\(option) names \"\(name)\", which is no input of the function"
        case .unknownOutput(let name): "\"\(name)\" is to be donated to, but is no output of the function"
        case .missingInput(let name): "no value is given for \"\(name)\""
        case .mismatch(let name, let got, let expected): "\"\(name)\" is \(got), the function says \(expected)"
        case .donatedTwice(let name): "the output \"\(name)\" is donated to more than one input"
        case .rangeNeedsInt32(let name): "a range was given for \"\(name)\", which is not an int32 input"
        case .unknownWatched(let name): "\"\(name)\" is to be watched, but is no value of the function"
        }
    }

    var subject: String {
        switch self {
        case .unknownInput(_, let name), .unknownOutput(let name), .missingInput(let name), .mismatch(let name, _, _),
            .donatedTwice(let name), .rangeNeedsInt32(let name), .unknownWatched(let name):
            name
        }
    }
}
