// rlx_placement: where Core ML plans to run a model.

import CRLX
import Foundation
import RLX

final class PlacementHandle: Handle {
    let json: CString

    init(_ report: PlacementReport) throws(RLXError) { json = CString(try report.json()) }
}

@c @implementation
public func rlx_placement_load(
    _ path: UnsafePointer<CChar>!, _ function: UnsafePointer<CChar>!, _ units: Int32,
    _ out: UnsafeMutablePointer<OpaquePointer?>!, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let path = try string(path, "path")
        let function = try optionalString(function, "function")
        guard let units = ComputeUnits(rawValue: units) else { throw .unknown("rlx_units", units) }
        let report = try PlacementReport.loadAndWait(
            contentsOf: URL(fileURLWithPath: path), function: function, units: units)
        out.pointee = retained(try PlacementHandle(report))
    }
}

@c @implementation
public func rlx_placement_json(_ placement: OpaquePointer!) -> UnsafePointer<CChar>! {
    borrowed(placement, as: PlacementHandle.self)?.json.pointer
}

@c @implementation
public func rlx_placement_destroy(_ placement: OpaquePointer!) { released(placement) }
