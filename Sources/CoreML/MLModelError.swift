// Errors as Core ML throws them: one domain, numbered codes, text in the user info.
import Foundation

public let MLModelErrorDomain = "com.apple.CoreML"

public struct MLModelError: CustomNSError, Hashable {
    public enum Code: Int, Sendable {
        case generic = 0
        case featureType = 1
        case io = 3
        case customLayer = 4
        case customModel = 5
        case update = 6
        case parameters = 7
        case modelDecryptionKeyFetch = 8
        case modelDecryption = 9
        case modelCollection = 10
        case predictionCancelled = 11
    }

    public let code: Code
    private let nsError: NSError

    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        self.code = code
        nsError = NSError(domain: MLModelErrorDomain, code: code.rawValue, userInfo: userInfo)
    }

    init(_ code: Code, _ text: String) { self.init(code, userInfo: [NSLocalizedDescriptionKey: text]) }

    public static var errorDomain: String { MLModelErrorDomain }
    public var errorCode: Int { code.rawValue }
    public var errorUserInfo: [String: Any] { nsError.userInfo }
    public var userInfo: [String: Any] { nsError.userInfo }

    public static func == (a: MLModelError, b: MLModelError) -> Bool { a.nsError.isEqual(b.nsError) }
    public func hash(into hasher: inout Hasher) { hasher.combine(nsError) }
}

extension MLModelError {
    public static var generic: Code { .generic }
    public static var featureType: Code { .featureType }
    public static var io: Code { .io }
    public static var customLayer: Code { .customLayer }
    public static var customModel: Code { .customModel }
    public static var update: Code { .update }
    public static var parameters: Code { .parameters }
    public static var modelDecryptionKeyFetch: Code { .modelDecryptionKeyFetch }
    public static var modelDecryption: Code { .modelDecryption }
    public static var modelCollection: Code { .modelCollection }
    public static var predictionCancelled: Code { .predictionCancelled }
}

extension MLModelError.Code {
    /// `catch MLModelError.io`
    public static func ~= (code: Self, error: any Error) -> Bool { (error as? MLModelError)?.code == code }
}
