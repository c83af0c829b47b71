// Slices whose place comes with the run and whose size does not: one plan serves all places.
import RLXKernels

/// A part of a value, of fixed size.
struct SlidingWindow {
    /// Where it begins along each axis.
    var begin: View
    /// Elements along each axis of the part and of the whole.
    var count: [Int]
    var size: [Int]
    /// Axes whose `begin` does not count: the window begins at the first element.
    var fromStart: Set<Int> = []
    /// Axes that the part does not have.
    var squeezed: [Int] = []

    fileprivate func place(_ begin: UnsafePointer<Int32>) -> rlxk_window_place {
        var place = rlxk_window_place()
        place.begin = begin
        place.rank = Int32(size.count)
        place.from_start = bits(fromStart)
        withUnsafeMutableBytes(of: &place.size) { $0.copyBytes(from: size.map(Int64.init).bytes) }
        withUnsafeMutableBytes(of: &place.count) { $0.copyBytes(from: count.map(Int64.init).bytes) }
        return place
    }
}

private func bits(_ axes: some Sequence<Int>) -> UInt32 { axes.reduce(0) { $0 | 1 << UInt32($1) } }

extension [Int64] {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(Array<UInt8>.init) }
}

extension Call {
    /// What begin, end and the masks say of `x`, where they are known in each run only and the part has the shape `part`;
    /// nil where they are constant. Makes runs fail, before they change anything, in which they say something else.
    func slidingWindow(of x: View, part: [Int]?) throws(RuntimeError) -> SlidingWindow? {
        guard let part, try isComputed(["begin", "end"]) else { return nil }
        let (begin, end) = (try indices("begin"), try indices("end"))
        let rank = x.rank
        let none = Array(repeating: false, count: rank)
        let (fromStart, toEnd) = (try bools("begin_mask") ?? none, try bools("end_mask") ?? none)
        let squeezed = try bools("squeeze_mask") ?? none
        let steps = try optionalInts("stride") ?? []
        guard rank <= Launch.largestRank, [begin.shape, end.shape] == [[rank], [rank]],
            [fromStart.count, toEnd.count, squeezed.count] == [rank, rank, rank], steps.allSatisfy({ $0 == 1 }),
            part.count == rank - squeezed.count(where: \.self)
        else { return nil }
        var rest = part[...]
        let count = squeezed.map { $0 ? 1 : rest.removeFirst() }
        guard zip(count, x.shape).allSatisfy({ 0 < $0 && $0 <= $1 }) else { return nil }
        func axes(_ mask: [Bool]) -> [Int] { mask.indices.filter { mask[$0] } }
        let window = SlidingWindow(
            begin: try graph.dense(begin), count: count, size: x.shape, fromStart: Set(axes(fromStart)),
            squeezed: axes(squeezed))
        try graph.check(window, end: graph.dense(end), toEnd: axes(toEnd))
        return window
    }

    /// As above, for a part of `size` elements along each axis.
    func slidingWindow(of x: View, size: [Int]) throws(RuntimeError) -> SlidingWindow? {
        guard try isComputed(["begin"]) else { return nil }
        let begin = try indices("begin")
        guard x.rank <= Launch.largestRank, begin.shape == [x.rank], size.count == x.rank,
            zip(size, x.shape).allSatisfy({ 0 < $0 && $0 <= $1 })
        else { return nil }
        let window = SlidingWindow(begin: try graph.dense(begin), count: size, size: x.shape)
        try graph.check(window, end: nil, toEnd: [])
        return window
    }

    /// Whether the values are known in each run only, and soon: their checks compute them once more.
    private func isComputed(_ names: [String]) throws(RuntimeError) -> Bool {
        var buffers: [Int] = []
        for name in names {
            let view = try view(name)
            if graph.constantAddress(view) == nil { buffers.append(view.buffer) }
        }
        return !buffers.isEmpty && graph.isCheap(buffers)
    }
}

extension GraphBuilder {
    fileprivate func isCheap(_ buffers: [Int]) -> Bool {
        var part = graph
        part.keepLive(for: Set(buffers))
        return part.nodes.reduce(0) { $0 + $1.reads.reduce(0) { $0 + $1.count } } <= Self.cheapWork
    }

    private static let cheapWork = 1 << 12

    func taken(_ window: SlidingWindow, from whole: View) throws(RuntimeError) -> View {
        let part = try empty(whole.type, window.count)
        move(window, whole: try dense(whole), part: part, isUpdate: false)
        return part
    }

    func put(_ part: View, into whole: View, at window: SlidingWindow) throws(RuntimeError) {
        move(window, whole: whole, part: try dense(part), isUpdate: true)
    }

    private func move(_ window: SlidingWindow, whole: View, part: View, isUpdate: Bool) {
        let bytes = Int64(part.type.size)
        let kernel = Kernel(
            run: rlxk_window_move_run, reads: [isUpdate ? part : whole, window.begin],
            writes: [isUpdate ? whole : part], nanoseconds: Double(part.count) * 0.2 + 50
        ) { arguments, memory in
            UnsafeRawPointer(
                arguments.store(
                    rlxk_window_move(
                        place: window.place(memory.indices(1)), whole: isUpdate ? memory.write(0) : memory.read(0),
                        part: isUpdate ? memory.read(0) : memory.write(0), bytes: bytes, is_update: isUpdate ? 1 : 0)))
        }
        add(.kernel(kernel))
    }

    fileprivate func check(_ window: SlidingWindow, end: View?, toEnd: [Int]) throws(RuntimeError) {
        try check(among: window.size.max() ?? 0) { failure in
            Kernel(
                run: rlxk_window_check_run, reads: [window.begin] + (end.map { [$0] } ?? []), writes: [failure],
                nanoseconds: 50
            ) { arguments, memory in
                UnsafeRawPointer(
                    arguments.store(
                        rlxk_window_check(
                            place: window.place(memory.indices(0)), end: end == nil ? nil : memory.indices(1),
                            to_end: bits(toEnd), lone: bits(window.squeezed),
                            failure: memory.write(0).assumingMemoryBound(to: Int32.self))))
            }
        }
    }
}
