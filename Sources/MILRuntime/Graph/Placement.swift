// Buffers that hold one value everywhere but at evenly spaced places: paddings and interleaved zeros. Knowing what stands
// where, a padding of a part of a padding is one copy from the first source.

struct Placement {
    /// Rank 0; what stands at all other places.
    var fill: View
    var source: View
    /// Where the source's elements stand in the buffer: a view of the source's shape.
    var region: View
}

/// The source of a placement as it appears in a view of its buffer.
struct LocatedSource {
    var fill: View
    /// Has the rank of the view, one dimension for one.
    var source: View
    /// For each dimension of the view the index of the source's first element, and the distance to the next one.
    var starts: [Int]
    var steps: [Int]
}

extension Placement {
    /// What `view` of the placement's buffer holds, or nil where that is not evenly spaced along its dimensions.
    func located(in view: View) -> LocatedSource? {
        guard !view.shape.contains(0), !source.shape.contains(0),
            let parts = aligned(to: view), let source = source.reshaped(parts.map(\.count)),
            let starts = starts(in: view), isUnambiguous(view, parts, starts)
        else { return nil }
        var result = LocatedSource(fill: fill, source: source, starts: starts, steps: parts.map(\.step))
        for axis in starts.indices {
            // What the view does not show goes.
            let (start, step, count) = (starts[axis], parts[axis].step, parts[axis].count)
            let first = start >= 0 ? 0 : (-start + step - 1) / step
            let end = start > view.shape[axis] - 1 ? 0 : min(count, (view.shape[axis] - 1 - start) / step + 1)
            result.source = result.source.sliced(axis: axis, start: first, count: max(end - first, 0))
            result.starts[axis] = start + first * step
        }
        return result
    }

    private struct Part {
        var count = 1
        var step = 1
    }

    /// For each dimension of the view, how many of the region's indices go along it and how far apart they are.
    private func aligned(to view: View) -> [Part]? {
        var dimensions: [(count: Int, stride: Int)] = []
        for (count, stride) in zip(region.shape, region.strides).reversed() where count > 1 {
            guard stride > 0 else { return nil }
            if let inner = dimensions.last, stride == inner.stride * inner.count {
                dimensions[dimensions.count - 1].count *= count
            } else {
                dimensions.append((count, stride))
            }
        }
        var parts = Array(repeating: Part(), count: view.rank)
        var previous = Int.max
        for axis in view.shape.indices where view.shape[axis] > 1 {
            let stride = view.strides[axis]
            guard stride > 0, stride < previous else { return nil }
            previous = stride
            guard let outer = dimensions.last else { continue }
            if outer.stride >= stride {
                guard outer.stride % stride == 0 else { return nil }
                parts[axis] = Part(count: outer.count, step: outer.stride / stride)
                dimensions.removeLast()
            } else if (outer.count - 1) * outer.stride >= stride {
                // The dimension goes on inside this one.
                guard stride % outer.stride == 0, outer.count % (stride / outer.stride) == 0 else { return nil }
                let inner = stride / outer.stride
                parts[axis] = Part(count: outer.count / inner, step: 1)
                dimensions[dimensions.count - 1].count = inner
            }
        }
        return dimensions.allSatisfy { $0.count == 1 } ? parts : nil
    }

    private func starts(in view: View) -> [Int]? {
        var distance = region.offset - view.offset
        var starts = Array(repeating: 0, count: view.rank)
        for axis in view.shape.indices where view.shape[axis] > 1 {
            let stride = view.strides[axis]
            // To the nearest: the rest may be a little before or behind along the inner dimensions.
            starts[axis] = (2 * distance + (distance < 0 ? -stride : stride)) / (2 * stride)
            distance -= starts[axis] * stride
        }
        return distance == 0 ? starts : nil
    }

    /// Whether no two indices of the view and the region together mean one element.
    private func isUnambiguous(_ view: View, _ parts: [Part], _ starts: [Int]) -> Bool {
        var inner = 0
        for axis in view.shape.indices.reversed() {
            let lowest = min(0, starts[axis])
            let highest = max(view.shape[axis] - 1, starts[axis] + parts[axis].step * (parts[axis].count - 1))
            if highest == lowest { continue }
            // Dimensions of size 1 have no stride of their own.
            guard view.shape[axis] > 1, view.strides[axis] > inner else { return false }
            inner += (highest - lowest) * view.strides[axis]
        }
        return true
    }
}

extension GraphBuilder {
    /// A buffer that holds `fill` everywhere but where the source's elements stand, each dimension from its start on.
    func place(_ located: LocatedSource, in shape: [Int]) throws(RuntimeError) -> View {
        let result = try empty(located.source.type, shape)
        if result.count == 0 { return result }
        var region = result
        for axis in shape.indices {
            region = region.sliced(
                axis: axis, start: located.starts[axis], count: located.source.shape[axis], step: located.steps[axis])
        }
        copy(located.fill.broadcast(to: shape), into: result)
        copy(located.source, into: region)
        note(Placement(fill: located.fill, source: located.source, region: region))
        return result
    }
}
