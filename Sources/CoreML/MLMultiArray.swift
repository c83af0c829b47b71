// MLMultiArray: shape, strides and memory. Its element access is in MLMultiArray+Access.swift.
import Foundation

open class MLMultiArray: NSObject {
    public let dataType: MLMultiArrayDataType
    public let dataPointer: UnsafeMutableRawPointer
    let layout: ArrayLayout
    /// With padding.
    private let byteCount: Int
    private let deallocator: (UnsafeMutableRawPointer) -> Void

    open var shape: [NSNumber] { layout.shape.map { NSNumber(value: $0) } }
    /// Counted in scalars; rows may be padded.
    open var strides: [NSNumber] { layout.strides.map { NSNumber(value: $0) } }
    /// The product of the shape.
    open var count: Int { layout.count }

    /// Contiguous, in C order. The contents are undefined; here they are no numbers.
    public convenience init(shape: [NSNumber], dataType: MLMultiArrayDataType) throws {
        guard let layout = ArrayLayout(cOrder: shape.map(\.intValue)) else {
            throw MLModelError(.generic, "MLMultiArray cannot have the shape \(shape)")
        }
        self.init(layout: layout, dataType: dataType)
    }

    /// Over foreign memory, which is not copied.
    public init(
        dataPointer: UnsafeMutableRawPointer, shape: [NSNumber], dataType: MLMultiArrayDataType,
        strides: [NSNumber], deallocator: ((UnsafeMutableRawPointer) -> Void)? = nil
    ) throws {
        guard let layout = ArrayLayout(shape: shape.map(\.intValue), strides: strides.map(\.intValue)) else {
            throw MLModelError(.generic, "MLMultiArray cannot have shape \(shape) and strides \(strides)")
        }
        self.dataType = dataType
        self.dataPointer = dataPointer
        self.layout = layout
        byteCount = layout.span * dataType.size
        self.deallocator = deallocator ?? { _ in }
    }

    /// Own memory, not zeroed, so that whoever reads what was never written, or the padding, notices.
    init(layout: ArrayLayout, dataType: MLMultiArrayDataType) {
        self.dataType = dataType
        self.layout = layout
        byteCount = layout.spanWithPadding * dataType.size
        let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 64)
        memory.initializeMemory(as: UInt8.self, repeating: 0xFF, count: byteCount)
        dataPointer = memory
        deallocator = { $0.deallocate() }
    }

    deinit { deallocator(dataPointer) }

    /// All memory with its padding.
    var bytes: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: dataPointer, count: byteCount)
    }

    var view: ArrayView { ArrayView(base: dataPointer, layout: layout, dataType: dataType) }

    /// Copies into an array of the same shape, converting type and layout.
    @available(macOS 15, iOS 18, *)
    open func transfer(to destinationMultiArray: MLMultiArray) {
        precondition(layout.shape == destinationMultiArray.layout.shape, "transfer(to:) needs equal shapes")
        view.copy(to: destinationMultiArray.view)
    }

    open override var description: String {
        let size = layout.shape.isEmpty ? "scalar" : layout.shape.map(String.init).joined(separator: " × ")
        let shown = (0..<min(count, 32)).map { "\(self[$0])" }.joined(separator: ",")
        return "\(dataType) \(size) array\n[\(shown)\(count > 32 ? ",..." : "")]"
    }
}
