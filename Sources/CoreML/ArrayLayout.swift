// Where the elements of an array are, and copies between arrays of any layout and element type.

/// Shape and strides, both counted in scalars.
struct ArrayLayout: Equatable {
    var shape: [Int]
    var strides: [Int]

    /// Nil when a size is negative or the whole does not fit.
    init?(cOrder shape: [Int], rowAlignment: Int = 1) {
        var strides = [Int](repeating: 1, count: shape.count)
        var stride = 1
        for axis in shape.indices.reversed() {
            guard (0..<1 << 46).contains(shape[axis]) else { return nil }
            strides[axis] = stride
            var size = max(shape[axis], 1)
            if axis == shape.count - 1 { size = (size + rowAlignment - 1) / rowAlignment * rowAlignment }
            let (product, overflow) = stride.multipliedReportingOverflow(by: size)
            guard !overflow, product < 1 << 46 else { return nil }
            stride = product
        }
        self.shape = shape
        self.strides = strides
    }

    /// Nil unless the strides fit the shape and reach no address below the first element.
    init?(shape: [Int], strides: [Int]) {
        guard shape.count == strides.count else { return nil }
        var reach = 0
        for (size, stride) in zip(shape, strides) {
            guard size >= 0, stride >= 0 else { return nil }
            let (extent, tooFar) = stride.multipliedReportingOverflow(by: max(size - 1, 0))
            let (sum, overflow) = reach.addingReportingOverflow(extent)
            guard !tooFar, !overflow, sum < 1 << 46 else { return nil }
            reach = sum
        }
        self.shape = shape
        self.strides = strides
    }

    var count: Int { shape.reduce(1, *) }

    /// Scalars from the first element to the end of the last one.
    var span: Int {
        guard !shape.contains(0) else { return 0 }
        return zip(shape, strides).reduce(1) { $0 + ($1.0 - 1) * $1.1 }
    }

    /// As `span`, with the padding after the last row.
    var spanWithPadding: Int {
        guard let size = shape.first, let stride = strides.first else { return 1 }
        return max(span, size * stride)
    }

    func offset(_ index: [Int]) -> Int { zip(index, strides).reduce(0) { $0 + $1.0 * $1.1 } }

    /// The offset of the element at a C-order position.
    func offset(linear position: Int) -> Int {
        var rest = position
        var offset = 0
        for axis in shape.indices.reversed() {
            offset += rest % shape[axis] * strides[axis]
            rest /= shape[axis]
        }
        return offset
    }

    /// Calls the body with the offset of each row (the last axis) of both layouts, which have one shape.
    static func forEachRow(_ a: ArrayLayout, _ b: ArrayLayout, _ body: (Int, Int) -> Void) {
        guard a.count > 0 else { return }
        let outer = max(a.shape.count - 1, 0)
        var index = [Int](repeating: 0, count: outer)
        while true {
            body(a.offset(index), b.offset(index))
            var axis = outer - 1
            while axis >= 0 {
                index[axis] += 1
                if index[axis] < a.shape[axis] { break }
                index[axis] = 0
                axis -= 1
            }
            if axis < 0 { return }
        }
    }

    var rowLength: Int { shape.last ?? 1 }
    var rowStride: Int { strides.last ?? 1 }
}

/// Elements in memory.
struct ArrayView {
    var base: UnsafeMutableRawPointer
    var layout: ArrayLayout
    var dataType: MLMultiArrayDataType

    /// Copies all elements to an array of the same shape, converting as Swift's own conversions do.
    func copy(to other: ArrayView) {
        if dataType == other.dataType { return copyBytes(to: other) }
        let length = layout.rowLength
        ArrayLayout.forEachRow(layout, other.layout) { from, to in
            for i in 0..<length {
                other.store(load(from + i * layout.rowStride), to + i * other.layout.rowStride)
            }
        }
    }

    private func copyBytes(to other: ArrayView) {
        let size = dataType.size
        let length = layout.rowLength
        let isDense = layout.rowStride == 1 && other.layout.rowStride == 1
        ArrayLayout.forEachRow(layout, other.layout) { from, to in
            if isDense {
                (other.base + to * size).copyMemory(from: base + from * size, byteCount: length * size)
                return
            }
            for i in 0..<length {
                (other.base + (to + i * other.layout.rowStride) * size)
                    .copyMemory(from: base + (from + i * layout.rowStride) * size, byteCount: size)
            }
        }
    }

    /// The element at an offset counted in scalars. A double holds every value of the other types.
    func load(_ offset: Int) -> Double {
        let address = base + offset * dataType.size
        switch dataType {
        case .double: return address.loadUnaligned(as: Double.self)
        case .float32: return Double(address.loadUnaligned(as: Float.self))
        case .float16: return Double(address.loadUnaligned(as: Float16.self))
        case .int32: return Double(address.loadUnaligned(as: Int32.self))
        case .int8: return Double(address.loadUnaligned(as: Int8.self))
        }
    }

    func store(_ value: Double, _ offset: Int) {
        let address = base + offset * dataType.size
        switch dataType {
        case .double: address.storeBytes(of: value, as: Double.self)
        case .float32: address.storeBytes(of: Float(value), as: Float.self)
        case .float16: address.storeBytes(of: Float16(value), as: Float16.self)
        case .int32: address.storeBytes(of: Int32(saturating: value), as: Int32.self)
        case .int8: address.storeBytes(of: Int8(saturating: value), as: Int8.self)
        }
    }
}

extension FixedWidthInteger {
    /// Towards zero; NaN becomes zero.
    fileprivate init(saturating value: Double) {
        if value.isNaN {
            self = 0
        } else if value <= Double(Self.min) {
            self = .min
        } else if value >= Double(Self.max) {
            self = .max
        } else {
            self = Self(value)
        }
    }
}
