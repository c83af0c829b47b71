// Ways to make an MLMultiArray from other values.
import Foundation

extension MLMultiArray {
    /// Contents are undefined.
    @available(macOS 15, iOS 18, *)
    public convenience init(shape: [Int], dataType: MLMultiArrayDataType, strides: [Int]) {
        guard let layout = ArrayLayout(shape: shape, strides: strides) else {
            preconditionFailure("MLMultiArray cannot have shape \(shape) and strides \(strides)")
        }
        self.init(layout: layout, dataType: dataType)
    }

    public convenience init<C: Collection>(_ data: C) throws where C.Element: FixedWidthInteger {
        try self.init(rank1: data.map { Double($0) }, dataType: .int32)
    }

    public convenience init<C: Collection>(_ data: C) throws where C.Element == Float {
        try self.init(rank1: data.map { Double($0) }, dataType: .float32)
    }

    public convenience init<C: Collection>(_ data: C) throws where C.Element == Double {
        try self.init(rank1: Array(data), dataType: .double)
    }

    private convenience init(rank1 values: [Double], dataType: MLMultiArrayDataType) throws {
        try self.init(shape: [NSNumber(value: values.count)], dataType: dataType)
        for (index, value) in values.enumerated() { view.store(value, index) }
    }

    /// One array after the other along an axis, converted to the type.
    public convenience init(concatenating multiArrays: [MLMultiArray], axis: Int, dataType: MLMultiArrayDataType) {
        precondition(!multiArrays.isEmpty, "there is nothing to concatenate")
        var shape = multiArrays[0].layout.shape
        precondition(shape.indices.contains(axis), "there is no axis \(axis) in shape \(shape)")
        shape[axis] = multiArrays.reduce(0) { $0 + $1.layout.shape[axis] }
        guard let layout = ArrayLayout(cOrder: shape) else { preconditionFailure("\(shape) is too large") }
        self.init(layout: layout, dataType: dataType)
        var start = 0
        for array in multiArrays {
            var part = view
            part.layout.shape[axis] = array.layout.shape[axis]
            precondition(part.layout.shape == array.layout.shape, "the arrays differ in more than axis \(axis)")
            part.base += start * layout.strides[axis] * dataType.size
            array.view.copy(to: part)
            start += array.layout.shape[axis]
        }
    }
}
