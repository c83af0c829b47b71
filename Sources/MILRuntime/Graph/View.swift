// A value of the graph: a strided window on a buffer. Pure index arithmetic; knows nothing of operations.

/// Shapes are checked where views are made: the product of a view's sizes never overflows.
struct View: Hashable, Sendable {
    var buffer: Int
    var type: ElementType
    var shape: [Int]
    /// In elements; 0 repeats, negative walks backwards.
    var strides: [Int]
    /// Of the first element in the buffer.
    var offset: Int

    init(buffer: Int, type: ElementType, shape: [Int], strides: [Int]? = nil, offset: Int = 0) {
        self.buffer = buffer
        self.type = type
        self.shape = shape
        self.strides = strides ?? denseStrides(shape)
        self.offset = offset
    }

    var rank: Int { shape.count }
    var count: Int { shape.reduce(1, *) }

    /// Whether its elements lie one after another in row-major order.
    var isDense: Bool {
        if shape.contains(0) { return true }
        var expected = 1
        for (size, stride) in zip(shape, strides).reversed() where size != 1 {
            if stride != expected { return false }
            expected *= size
        }
        return true
    }

    func transposed(_ permutation: [Int]) -> View {
        var view = self
        view.shape = permutation.map { shape[$0] }
        view.strides = permutation.map { strides[$0] }
        return view
    }

    /// The same elements in another shape of the same count, or nil when that needs a copy.
    func reshaped(_ shape: [Int]) -> View? {
        guard let strides = splitStrides(of: self, over: shape) else { return nil }
        return View(buffer: buffer, type: type, shape: shape, strides: strides, offset: offset)
    }

    /// With size-1 dimensions at the given places of the result.
    func expanded(at axes: [Int]) -> View {
        var view = self
        for axis in axes.sorted() {
            view.shape.insert(1, at: axis)
            view.strides.insert(0, at: axis)
        }
        return view
    }

    /// Without the given dimensions, of which only index 0 stays.
    func dropping(_ axes: [Int]) -> View {
        var view = self
        for axis in axes.sorted(by: >) {
            view.shape.remove(at: axis)
            view.strides.remove(at: axis)
        }
        return view
    }

    /// `count` indices of one dimension from `start` on, `step` apart.
    func sliced(axis: Int, start: Int, count: Int, step: Int = 1) -> View {
        var view = self
        view.shape[axis] = count
        view.offset += start * strides[axis]
        view.strides[axis] = strides[axis] * step
        return view
    }

    /// Repeated along dimensions of size 1 and new leading ones; the caller has checked that it fits.
    func broadcast(to shape: [Int]) -> View {
        var view = self
        let extra = shape.count - rank
        view.shape = shape
        view.strides = shape.indices.map { axis in
            axis < extra || self.shape[axis - extra] != shape[axis] ? 0 : strides[axis - extra]
        }
        return view
    }
}

func denseStrides(_ shape: [Int]) -> [Int] {
    var strides = Array(repeating: 1, count: shape.count)
    for axis in stride(from: shape.count - 2, through: 0, by: -1) {
        strides[axis] = strides[axis + 1] &* max(shape[axis + 1], 1)
    }
    return strides
}

/// The shape that both broadcast to by NumPy's rules, or nil.
func broadcastShape(_ a: [Int], _ b: [Int]) -> [Int]? {
    let rank = max(a.count, b.count)
    var result: [Int] = []
    for axis in 0..<rank {
        let x = axis < rank - a.count ? 1 : a[axis - (rank - a.count)]
        let y = axis < rank - b.count ? 1 : b[axis - (rank - b.count)]
        guard x == y || x == 1 || y == 1 else { return nil }
        result.append(x == 1 ? y : x)
    }
    return result
}

/// The strides by which `view` is walked in row-major order as `shape`, or nil when there are none.
func splitStrides(of view: View, over shape: [Int]) -> [Int]? {
    if view.shape.contains(0) { return denseStrides(shape) }
    var result = Array(repeating: 0, count: shape.count)
    var axis = shape.count - 1
    var source = view.rank - 1
    while source >= 0 {
        // The longest run of source dimensions that is evenly spaced, as one dimension.
        var size = view.shape[source]
        let step = view.strides[source]
        source -= 1
        if size == 1 { continue }
        while source >= 0, view.shape[source] == 1 || view.strides[source] == step * size {
            size *= view.shape[source]
            source -= 1
        }
        var stride = step
        while size > 1 {
            guard axis >= 0, size % shape[axis] == 0 else { return nil }
            result[axis] = shape[axis] == 1 ? 0 : stride
            stride *= shape[axis]
            size /= shape[axis]
            axis -= 1
        }
    }
    return result
}

/// The coarsest dimensions into which both shapes (of one count) split, without those of size 1, or nil.
func commonRefinement(_ a: [Int], _ b: [Int]) -> [Int]? {
    if a.contains(0) || b.contains(0) { return [0] }
    var result: [Int] = []
    var i = a.count - 1
    var j = b.count - 1
    var x = 1
    var y = 1
    while true {
        while x == 1, i >= 0 { (x, i) = (a[i], i - 1) }
        while y == 1, j >= 0 { (y, j) = (b[j], j - 1) }
        if x == 1 || y == 1 { break }
        let part = min(x, y)
        guard x % part == 0, y % part == 0 else { return nil }
        result.append(part)
        x /= part
        y /= part
    }
    return result.reversed()
}
