// Slices and paddings: parts of a value, and values that are part of a larger one.
import RLXKernels

let slicingRules: [OperationRule] = [
    OperationRule("slice_by_index", sliceParameters) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        guard let window = try call.slidingWindow(of: x, part: call.declaredShape) else { return try call.slice(of: x) }
        return try call.graph.taken(window, from: x).dropping(window.squeezed)
    },
    OperationRule("slice_by_size", ["x": .required, "begin": .required, "size": .required]) {
        (call) throws(RuntimeError) in
        var x = try call.view("x")
        let size = try call.ints("size")
        if let window = try call.slidingWindow(of: x, size: size) { return try call.graph.taken(window, from: x) }
        let begin = try call.ints("begin")
        guard begin.count == x.rank, size.count == x.rank else {
            throw call.failure(.value(parameter: "begin", got: "\(begin)", expected: "\(x.rank) numbers"))
        }
        for axis in 0..<x.rank {
            let start = begin[axis] < 0 ? begin[axis] + x.shape[axis] : begin[axis]
            let count = size[axis] == -1 ? x.shape[axis] - start : size[axis]
            guard start >= 0, count >= 0, start <= x.shape[axis], count <= x.shape[axis] - start else {
                throw call.failure(.value(parameter: "size", got: "\(size)", expected: "a part of \(x.shape)"))
            }
            x = x.sliced(axis: axis, start: start, count: count)
        }
        return x
    },
    OperationRule("slice_update", sliceParameters.merging(["update": .required]) { one, _ in one }) {
        (call) throws(RuntimeError) in
        let (x, update) = try call.alike("x", "update")
        let result = try call.graph.empty(x.type, x.shape)
        if let window = try call.slidingWindow(of: x, part: update.shape) {
            call.graph.copy(x, into: result)
            try call.graph.put(update, into: result, at: window)
            return result
        }
        let target = try call.slice(of: result)
        guard target.shape == update.shape else {
            throw call.failure(.shape(parameter: "update", got: update.shape, expected: "\(target.shape)"))
        }
        call.graph.copy(x, into: result)
        call.graph.copy(update, into: target)
        return result
    },
    OperationRule("pad", ["x": .required, "pad": .required, "mode": "constant", "constant_val": 0.0]) {
        (call) throws(RuntimeError) in
        let x = try call.view("x")
        let pad = try call.ints("pad")
        guard pad.count % 2 == 0, pad.count <= 2 * x.rank, pad.allSatisfy({ $0 >= 0 && $0 < 1 << 40 }) else {
            throw call.failure(
                .value(parameter: "pad", got: "\(pad)", expected: "pairs for the last axes of rank \(x.rank)"))
        }
        let mode = try call.choice("mode", PadMode.self)
        let value = try call.graph.scalar(call.float("constant_val"), x.type)
        return try call.graph.pad(x, pad, mode, value)
    },
]

enum PadMode: String, CaseIterable {
    case constant, reflect, replicate
}

private let sliceParameters: [String: Default] = [
    "x": .required, "begin": .required, "end": .required, "stride": .absent, "begin_mask": .absent,
    "end_mask": .absent, "squeeze_mask": .absent,
]

extension Call {
    /// The part of `x` that begin, end, stride and the masks say.
    fileprivate func slice(of x: View) throws(RuntimeError) -> View {
        let begin = try ints("begin")
        let end = try ints("end")
        let step = try optionalInts("stride") ?? Array(repeating: 1, count: x.rank)
        let none = Array(repeating: false, count: x.rank)
        let beginMask = try bools("begin_mask") ?? none
        let endMask = try bools("end_mask") ?? none
        let squeezeMask = try bools("squeeze_mask") ?? none
        for (name, count) in [
            ("begin", begin.count), ("end", end.count), ("stride", step.count), ("begin_mask", beginMask.count),
            ("end_mask", endMask.count), ("squeeze_mask", squeezeMask.count),
        ] where count != x.rank {
            throw failure(.value(parameter: name, got: "\(count) elements", expected: "\(x.rank)"))
        }
        var result = x
        for axis in 0..<x.rank {
            let size = x.shape[axis]
            if squeezeMask[axis] {
                let start = beginMask[axis] ? 0 : begin[axis] < 0 ? begin[axis] + size : begin[axis]
                guard start >= 0, start < size else {
                    throw failure(.value(parameter: "begin", got: "\(begin)", expected: "an index of \(x.shape)"))
                }
                result = result.sliced(axis: axis, start: start, count: 1)
                continue
            }
            guard step[axis] != 0, step[axis] != .min else {
                throw failure(.value(parameter: "stride", got: "\(step)", expected: "no zero"))
            }
            let range = PythonSlice(
                begin: beginMask[axis] ? nil : begin[axis], end: endMask[axis] ? nil : end[axis], step: step[axis],
                size: size)
            result = result.sliced(
                axis: axis, start: range.start, count: range.count, step: range.count > 1 ? step[axis] : 1)
        }
        return result.dropping(squeezeMask.indices.filter { squeezeMask[$0] })
    }
}

/// Python's rules for `[begin:end:step]` on `size` elements.
private struct PythonSlice {
    var start: Int
    var count: Int

    init(begin: Int?, end: Int?, step: Int, size: Int) {
        let lowest = step > 0 ? 0 : -1
        let highest = step > 0 ? size : size - 1
        func clamped(_ index: Int) -> Int {
            min(max(index < 0 ? index.addingReportingOverflow(size).partialValue : index, lowest), highest)
        }
        start = begin.map(clamped) ?? (step > 0 ? lowest : highest)
        let stop = end.map(clamped) ?? (step > 0 ? highest : lowest)
        let distance = step > 0 ? stop - start : start - stop
        count = distance <= 0 ? 0 : (distance - 1) / abs(step) + 1
    }
}

extension GraphBuilder {
    /// `pad` holds [before, after] for each of the last axes.
    func pad(_ x: View, _ pad: [Int], _ mode: PadMode, _ value: View) throws(RuntimeError) -> View {
        let first = x.rank - pad.count / 2
        var before = Array(repeating: 0, count: x.rank)
        var after = before
        for (index, axis) in (first..<x.rank).enumerated() {
            before[axis] = pad[2 * index]
            after[axis] = pad[2 * index + 1]
            let size = x.shape[axis]
            let largest = mode == .constant || mode == .replicate && size > 0 ? Int.max : max(size - 1, 0)
            guard max(before[axis], after[axis]) <= largest else {
                throw .invalid(
                    .value(parameter: "pad", got: "\(pad)", expected: "less than the axes of \(x.shape)"), place)
            }
        }
        let shape = x.shape.indices.map { x.shape[$0] + before[$0] + after[$0] }
        if shape == x.shape { return x }
        if mode == .constant, let located = located(x), located.fill == value {
            var moved = located
            for axis in shape.indices { moved.starts[axis] += before[axis] }
            return try place(moved, in: shape)
        }
        let result = try empty(x.type, shape)
        // The part of the result that is filled; it grows to the whole, axis by axis.
        var filled = result
        for axis in 0..<x.rank {
            filled = filled.sliced(axis: axis, start: before[axis], count: x.shape[axis])
        }
        copy(x, into: filled)
        for axis in 0..<x.rank where filled.shape != shape {
            var grown = filled
            grown.shape[axis] = shape[axis]
            grown.offset -= before[axis] * result.strides[axis]
            for (start, count, isBefore) in [
                (0, before[axis], true), (before[axis] + x.shape[axis], after[axis], false),
            ] where count > 0 {
                let border = grown.sliced(axis: axis, start: start, count: count)
                copy(borderValues(filled, axis, count, isBefore, mode, value), into: border)
            }
            filled = grown
        }
        if mode == .constant {
            var region = result
            for axis in shape.indices { region = region.sliced(axis: axis, start: before[axis], count: x.shape[axis]) }
            note(Placement(fill: value, source: x, region: region))
        }
        return result
    }

    private func borderValues(
        _ filled: View, _ axis: Int, _ count: Int, _ isBefore: Bool, _ mode: PadMode, _ value: View
    ) -> View {
        let size = filled.shape[axis]
        var shape = filled.shape
        shape[axis] = count
        switch mode {
        case .constant: return value.broadcast(to: shape)
        case .replicate: return filled.sliced(axis: axis, start: isBefore ? 0 : size - 1, count: 1).broadcast(to: shape)
        case .reflect: return filled.sliced(axis: axis, start: isBefore ? count : size - 2, count: count, step: -1)
        }
    }
}
