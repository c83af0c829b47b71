// Element access of MLMultiArray: boxed subscripts, and closures over its memory.
import Foundation

extension MLMultiArray {
    /// The element at a C-order position.
    public subscript(idx: Int) -> NSNumber {
        get { number(layout.offset(linear: checked(idx))) }
        set { set(layout.offset(linear: checked(idx)), newValue) }
    }

    public subscript(key: [NSNumber]) -> NSNumber {
        get { number(layout.offset(checked(key))) }
        set { set(layout.offset(checked(key)), newValue) }
    }

    private func checked(_ index: Int) -> Int {
        precondition((0..<count).contains(index), "index \(index) is not in an array of \(count) elements")
        return index
    }

    private func checked(_ key: [NSNumber]) -> [Int] {
        let index = key.map(\.intValue)
        precondition(
            index.count == layout.shape.count && zip(index, layout.shape).allSatisfy { (0..<$1).contains($0) },
            "index \(index) is not in an array of shape \(layout.shape)")
        return index
    }

    private func number(_ offset: Int) -> NSNumber {
        let value = view.load(offset)
        switch dataType {
        case .int32, .int8: return NSNumber(value: Int32(value))
        case .float32, .float16: return NSNumber(value: Float(value))
        case .double: return NSNumber(value: value)
        }
    }

    private func set(_ offset: Int, _ value: NSNumber) { view.store(value.doubleValue, offset) }

    // MARK: Closures

    /// The storage with its padding; read `strides` to find elements.
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(bytes)) }
    }

    /// The storage with its padding, and the strides that hold inside the body.
    public func withUnsafeMutableBytes<R>(
        _ body: (UnsafeMutableRawBufferPointer, [Int]) throws -> R
    ) rethrows -> R {
        try withExtendedLifetime(self) { try body(bytes, layout.strides) }
    }

    public func withUnsafeBufferPointer<S: MLShapedArrayScalar, R>(
        ofType: S.Type, _ body: (UnsafeBufferPointer<S>) throws -> R
    ) rethrows -> R {
        precondition(S.multiArrayDataType == dataType, "the array holds \(dataType), not \(S.self)")
        return try withExtendedLifetime(self) { try body(UnsafeBufferPointer(bytes.bindMemory(to: S.self))) }
    }

    public func withUnsafeMutableBufferPointer<S: MLShapedArrayScalar, R>(
        ofType: S.Type, _ body: (UnsafeMutableBufferPointer<S>, [Int]) throws -> R
    ) rethrows -> R {
        precondition(S.multiArrayDataType == dataType, "the array holds \(dataType), not \(S.self)")
        return try withExtendedLifetime(self) { try body(bytes.bindMemory(to: S.self), layout.strides) }
    }
}

extension UnsafeBufferPointer {
    /// The array's storage; it must outlive the pointer.
    public init(_ multiArray: MLMultiArray) throws {
        self.init(try UnsafeMutableBufferPointer<Element>(multiArray))
    }
}

extension UnsafeMutableBufferPointer {
    /// The array's storage; it must outlive the pointer.
    public init(_ multiArray: MLMultiArray) throws {
        guard let scalar = Element.self as? any MLShapedArrayScalar.Type,
            scalar.multiArrayDataType == multiArray.dataType
        else { throw MLModelError(.featureType, "the array holds \(multiArray.dataType), not \(Element.self)") }
        self = multiArray.bytes.bindMemory(to: Element.self)
    }
}
