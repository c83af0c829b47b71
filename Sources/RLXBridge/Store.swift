// rlx_store: tensors that stay between steps.

import CRLX
import RLX

final class StoreHandle: Handle {
    let store = TensorStore()
}

@c @implementation
public func rlx_store_create(
    _ out: UnsafeMutablePointer<OpaquePointer?>!, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        try nonNull(out, "out").pointee = retained(StoreHandle())
    }
}

@c @implementation
public func rlx_store_put(
    _ store: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ value: UnsafePointer<rlx_tensor>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let store: StoreHandle = try handle(store, "store")
        let name = try string(name, "name")
        let (dtype, bytes) = try view(value, "value")
        try store.store.put(name, dtype: dtype, bytes)
    }
}

@c @implementation
public func rlx_store_get(
    _ store: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ out: UnsafeMutablePointer<rlx_tensor>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let store: StoreHandle = try handle(store, "store")
        let name = try string(name, "name")
        let (dtype, bytes) = try view(UnsafePointer(out), "out")
        try store.store.get(name, dtype: dtype, into: bytes)
    }
}

@c @implementation
public func rlx_store_destroy(_ store: OpaquePointer!) { released(store) }
