// Finds the derivative of a maximum over windows as programs write it, and does it in one pass.
//
// For each place k of the window such a program compares the window's element with the maximum, takes away the windows
// that an earlier place has won, lets the gradient through where that leaves a one, spreads the result over the image
// with zeros between, and adds up the images. All of that is checked; what it was meant for is not.
import RLXKernels

struct WindowWinners {
    private var index: GraphIndex

    static func fuse(_ graph: Graph, results: Set<Int>) -> Graph {
        if graph.placements.isEmpty { return graph }
        var pass = WindowWinners(index: GraphIndex(graph, results: results))
        for node in graph.nodes.indices.reversed() { pass.fuse(node) }
        var fused = graph
        fused.nodes = pass.index.nodes.compactMap(\.self)
        return fused
    }

    private mutating func fuse(_ node: Int) {
        guard let sum = index.map(node), sum.op == RLXK_ADD, index.isWhole(sum.result),
            let images = images(node, sum), images.count >= 2, let winners = winners(images),
            let kernel = kernel(winners, sum.result)
        else { return }
        index.nodes[node]!.work = .kernel(kernel)
    }

    // MARK: Matching

    /// The images that a tree of additions adds up, in order; nil unless each is a source among zeros.
    private func images(_ node: Int, _ sum: Map) -> [Placement]? {
        var images: [Placement] = []
        var pending = sum.operands.reversed().map { (view: $0, reader: node) }
        while let (view, reader) = pending.popLast() {
            guard index.isWhole(view), index.isOnlyRead(by: reader, view.buffer) else { return nil }
            if let placement = index.placement(view.buffer) {
                guard index.constant(placement.fill) == 0, placement.source.type == .float32 else { return nil }
                images.append(placement)
            } else if let inner = index.map(making: view), inner.op == RLXK_ADD {
                pending += inner.operands.reversed().map { (view: $0, reader: index.writer[view.buffer]!) }
            } else {
                return nil
            }
        }
        return images
    }

    private struct Winners {
        /// One view of the windows' elements for each place.
        var places: [View] = []
        /// Where their gradients go.
        var targets: [View] = []
        var maximum: View
        var gradient: View
    }

    private func winners(_ images: [Placement]) -> Winners? {
        var result: Winners?
        /// Ones where no earlier place has won.
        var free: View?
        for image in images {
            guard let choice = index.map(making: image.source), choice.op == RLXK_SELECT,
                index.constant(choice.operands[2]) == 0,
                let isOne = index.map(making: choice.operands[0]), isOne.op == RLXK_EQ,
                index.constant(isOne.operands[1]) == 1, let won = index.map(making: isOne.operands[0]),
                let hit = hit(won, free)
            else { return nil }
            let gradient = choice.operands[1]
            if result == nil { result = Winners(maximum: hit.maximum, gradient: gradient) }
            guard result!.maximum == hit.maximum, result!.gradient == gradient else { return nil }
            result!.places.append(hit.place)
            result!.targets.append(image.region.reshaped(hit.place.shape) ?? image.region)
            if result!.places.count < images.count {
                guard let next = remaining(won.result, free) else { return nil }
                free = next
            }
        }
        return result
    }

    /// What `won` compares, if it is a comparison as a number, times `free` where there is one.
    private func hit(_ won: Map, _ free: View?) -> (place: View, maximum: View)? {
        var cast = won
        if let free {
            guard won.op == RLXK_MUL, let side = [0, 1].first(where: { won.operands[1 - $0] == free }),
                let factor = index.map(making: won.operands[side])
            else { return nil }
            cast = factor
        }
        guard cast.op == RLXK_I32_TO_F32, let equal = index.map(making: cast.operands[0]), equal.op == RLXK_EQ else {
            return nil
        }
        return (equal.operands[0], equal.operands[1])
    }

    /// The view that is 1 - won, or free - won, among the readers of won.
    private func remaining(_ won: View, _ free: View?) -> View? {
        for reader in index.readers[won.buffer] ?? [] {
            guard let map = index.map(reader), map.op == RLXK_SUB, map.operands[1] == won, index.isWhole(map.result)
            else { continue }
            if let free, map.operands[0] == free { return map.result }
            if free == nil, index.constant(map.operands[0]) == 1 { return map.result }
        }
        return nil
    }

    // MARK: The kernel

    private func kernel(_ winners: Winners, _ result: View) -> Kernel? {
        guard let first = winners.places.first, let target = winners.targets.first, first.rank >= 2,
            winners.maximum.isDense, winners.gradient.isDense, target.strides == first.strides,
            first.type == .float32, first.strides.allSatisfy({ $0 >= 0 }),
            let planes = first.planes, let step = planes.step(over: result.count)
        else { return nil }
        var offsets: [Int] = []
        for (place, image) in zip(winners.places, winners.targets) {
            let offset = place.offset - first.offset
            guard place.buffer == first.buffer, place.shape == first.shape, place.strides == first.strides,
                image.shape == place.shape, image.strides == place.strides, image.offset - target.offset == offset
            else { return nil }
            offsets.append(offset)
        }
        let (rows, columns) = (first.shape[first.rank - 2], first.shape[first.rank - 1])
        let (rowStep, columnStep) = (first.strides[first.rank - 2], first.strides[first.rank - 1])
        let reach = (rows - 1) * rowStep + (columns - 1) * columnStep
        guard offsets.allSatisfy({ target.offset + $0 >= 0 && target.offset + $0 + reach < step }) else { return nil }
        return Kernel(
            run: rlxk_winner_run, reads: [first, winners.maximum, winners.gradient], writes: [result],
            nanoseconds: Double(first.count * offsets.count)
        ) { arguments, memory in
            var call = rlxk_winner()
            call.x = UnsafePointer(memory.read(0).assumingMemoryBound(to: Float.self))
            call.y = UnsafePointer(memory.read(1).assumingMemoryBound(to: Float.self))
            call.g = UnsafePointer(memory.read(2).assumingMemoryBound(to: Float.self))
            call.out = memory.write(0).assumingMemoryBound(to: Float.self)
            call.out_start = Int64(target.offset)
            (call.planes, call.rows, call.columns) = (Int64(planes.count), Int64(rows), Int64(columns))
            (call.plane_step, call.row_step, call.column_step) = (Int64(step), Int64(rowStep), Int64(columnStep))
            call.count = Int64(offsets.count)
            call.offset = UnsafePointer(arguments.store(offsets.map { Int64($0) }))
            return UnsafeRawPointer(arguments.store(call))
        }
    }
}

private struct Planes {
    var count: Int
    var stride: Int?

    /// The distance of planes that make up a buffer of `size` elements.
    func step(over size: Int) -> Int? {
        guard size % count == 0, stride == nil || stride == size / count else { return nil }
        return size / count
    }
}

extension View {
    /// All dimensions but the last two as one, if they are evenly spaced.
    fileprivate var planes: Planes? {
        var planes = Planes(count: 1, stride: nil)
        for axis in shape.indices.dropLast(2).reversed() where shape[axis] > 1 {
            guard let stride = planes.stride else {
                planes = Planes(count: shape[axis], stride: strides[axis])
                continue
            }
            guard strides[axis] == stride * planes.count else { return nil }
            planes.count *= shape[axis]
        }
        return planes
    }
}
