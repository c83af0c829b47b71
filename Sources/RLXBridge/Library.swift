// What the library says of itself and of its devices.

import CRLX
import RLX

private let version = CString(RLXLibrary.version)
private let instructionSet = CString(RLXLibrary.instructionSet)

@c @implementation
public func rlx_abi_version() -> Int32 { RLX_ABI_VERSION }

@c @implementation
public func rlx_version() -> UnsafePointer<CChar>! { version.pointer }

@c @implementation
public func rlx_isa() -> UnsafePointer<CChar>! { instructionSet.pointer }

@c @implementation
public func rlx_set_interrupt(_ ask: (@convention(c) () -> Int32)!, _ thread: UInt64) {
    RLXLibrary.setInterrupt(ask, thread: thread)
}

@c @implementation
public func rlx_live_handles() -> Int64 { LiveHandles.shared.current }

@c @implementation
public func rlx_device_check(
    _ device: Int32, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        guard let device = Device(rawValue: device) else { throw .unknown("rlx_device", device) }
        try device.check()
    }
}
