// What can be wrong with a package on disk or in memory: the facts, and the only wording of them.

import Foundation

/// A package that cannot be read, and why.
public enum FormatError: Error, Sendable, Hashable {
    /// The operating system refused; `code` is its `errno`.
    case io(path: String, code: Int32)
    /// The path holds something else than a Core ML package.
    case notAPackage(path: String, Foreign)
    /// The protobuf message `message` breaks off or contradicts itself at byte `offset` of the model file.
    case malformed(message: String, offset: Int, WireFault)
    /// Messages nest deeper than any real model.
    case nestedTooDeeply(limit: Int)
    /// A message lacks a field that it cannot do without.
    case missing(field: String, message: String)
    /// An enumeration holds a number that we do not know.
    case unknownValue(Int64, of: String)
    /// A constant's payload does not have the elements that its type says.
    case constantMismatch(expected: Int, got: Int, unit: String)
    /// A model of another kind than an ML Program.
    case unsupportedKind(String)
    case noSuchFunction(String, available: [String])
    /// A function says that it runs under an opset for which it has no body.
    case noBody(function: String, opset: String)
    case badBlob(file: String, offset: UInt64, BlobFault)
    /// Somebody shortened a mapped file.
    case shortened(file: String)
}

extension FormatError {
    public enum Foreign: Sendable, Hashable {
        case noManifest, badManifest(String), noModelItem, unsafePath(String), compiledByApple, notAFile
    }

    public enum WireFault: Sendable, Hashable {
        case truncated, varintTooLong, badTag, wrongWireType, invalidUTF8, numberTooLarge, rankMismatch
    }

    public enum BlobFault: Sendable, Hashable {
        case noSuchFile, unsafePath, badHeader, misaligned, outOfBounds, badSentinel, unknownType(UInt32), badPadding
    }
}

extension FormatError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .io(let path, let code):
            "\(path): the system refused access (\(String(cString: strerror(code))))"
        case .notAPackage(let path, let foreign):
            "\(path) is not a Core ML package: \(foreign.text)"
        case .malformed(let message, let offset, let fault):
            "the model file is damaged: \(fault.text) at byte \(offset), in \(message)"
        case .nestedTooDeeply(let limit):
            "the model file is damaged: messages nest more than \(limit) deep"
        case .missing(let field, let message):
            "the model file is damaged: \(message) has no \(field)"
        case .unknownValue(let value, let type):
            "the model file holds \(value), which is no known \(type)"
        case .constantMismatch(let expected, let got, let unit):
            "the model file is damaged: a constant should have \(expected) \(unit) by its type and has \(got)"
        case .unsupportedKind(let kind):
            "the model is of kind \(kind); only ML Programs (mlProgram) can be run: convert it to one"
        case .noSuchFunction(let name, let available):
            "the model has no function '\(name)'; it has \(available.map { "'\($0)'" }.joined(separator: ", "))"
        case .noBody(let function, let opset):
            "function '\(function)' has no body for its own opset '\(opset)'"
        case .badBlob(let file, let offset, let fault):
            "weights '\(file)' at offset \(offset): \(fault.text)"
        case .shortened(let file):
            "'\(file)' was shortened while the package was open; what was read of it is not to be trusted"
        }
    }

    /// The file, message or function at fault, or "".
    public var subject: String {
        switch self {
        case .io(let path, _), .notAPackage(let path, _): path
        case .malformed(let message, _, _), .missing(_, let message): message
        case .unsupportedKind(let kind): kind
        case .noSuchFunction(let name, _), .noBody(let name, _): name
        case .badBlob(let file, _, _), .shortened(let file): file
        case .nestedTooDeeply, .unknownValue, .constantMismatch: ""
        }
    }
}

extension FormatError.Foreign {
    fileprivate var text: String {
        switch self {
        case .noManifest: "the directory has no Manifest.json"
        case .badManifest(let reason): "its Manifest.json cannot be read (\(reason))"
        case .noModelItem: "its Manifest.json names no root model"
        case .unsafePath(let path): "its Manifest.json points outside the package ('\(path)')"
        case .compiledByApple: "it was compiled by Apple's compiler; give the .mlpackage that it was made from"
        case .notAFile: "it is neither a directory nor a regular file"
        }
    }
}

extension FormatError.WireFault {
    fileprivate var text: String {
        switch self {
        case .truncated: "it breaks off"
        case .varintTooLong: "a number has more than ten bytes"
        case .badTag: "there is no field tag where one must be"
        case .wrongWireType: "a field is encoded as another type"
        case .invalidUTF8: "a string is not UTF-8"
        case .numberTooLarge: "a size does not fit"
        case .rankMismatch: "a tensor's rank is not its number of dimensions"
        }
    }
}

extension FormatError.BlobFault {
    fileprivate var text: String {
        switch self {
        case .noSuchFile: "the package has no such file"
        case .unsafePath: "the name points outside the package"
        case .badHeader: "the file is not a weight file of version 2"
        case .misaligned: "a record starts at a multiple of 64"
        case .outOfBounds: "the record reaches beyond the end of the file"
        case .badSentinel: "there is no record at this place"
        case .unknownType(let code): "the record's element type \(code) is not known"
        case .badPadding: "the record's padding does not fit its element type"
        }
    }
}
