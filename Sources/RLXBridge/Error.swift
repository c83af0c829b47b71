// rlx_error: a failure that the caller holds.

import CRLX
import RLX

final class ErrorHandle: Handle {
    let code: Int32
    let message: CString
    let detail: CString
    let subject: CString

    init(_ error: RLXError) {
        code = error.code.rawValue
        message = CString(error.message)
        detail = CString(error.detail)
        subject = CString(error.subject)
    }
}

/// What the accessors give for NULL.
private let none = CString("")

@c @implementation
public func rlx_error_code(_ error: OpaquePointer!) -> Int32 {
    borrowed(error, as: ErrorHandle.self)?.code ?? Int32(RLX_STATUS_OK.rawValue)
}

@c @implementation
public func rlx_error_message(_ error: OpaquePointer!) -> UnsafePointer<CChar>! {
    borrowed(error, as: ErrorHandle.self)?.message.pointer ?? none.pointer
}

@c @implementation
public func rlx_error_detail(_ error: OpaquePointer!) -> UnsafePointer<CChar>! {
    borrowed(error, as: ErrorHandle.self)?.detail.pointer ?? none.pointer
}

@c @implementation
public func rlx_error_subject(_ error: OpaquePointer!) -> UnsafePointer<CChar>! {
    borrowed(error, as: ErrorHandle.self)?.subject.pointer ?? none.pointer
}

@c @implementation
public func rlx_error_destroy(_ error: OpaquePointer!) { released(error) }
