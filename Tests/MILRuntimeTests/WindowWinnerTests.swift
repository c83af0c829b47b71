// The derivative of max pooling as a program spells it out in basic operations: the first winner of each window gets the
// window's gradient, and the plan does it in one pass.
import MILFormat
import Testing

@testable import MILRuntime

struct WindowWinnerTests {
    struct Case: CustomStringConvertible {
        var image: (Int, Int)
        var window: (Int, Int)
        var stride: (Int, Int)
        var padding: (Int, Int) = (0, 0)
        var description: String { "image \(image) window \(window) stride \(stride) padding \(padding)" }
        var count: (Int, Int) {
            (
                (image.0 + 2 * padding.0 - window.0) / stride.0 + 1,
                (image.1 + 2 * padding.1 - window.1) / stride.1 + 1
            )
        }
    }

    static let cases = [
        Case(image: (4, 6), window: (2, 2), stride: (2, 2)), Case(image: (14, 14), window: (2, 2), stride: (2, 2)),
        Case(image: (5, 7), window: (2, 2), stride: (2, 2)), Case(image: (5, 5), window: (3, 3), stride: (2, 2)),
        Case(image: (5, 5), window: (3, 3), stride: (2, 2), padding: (1, 1)),
        Case(image: (6, 5), window: (3, 2), stride: (1, 2), padding: (0, 1)),
        // Rows of more than a vector of windows.
        Case(image: (4, 78), window: (2, 2), stride: (2, 2)), Case(image: (5, 41), window: (3, 3), stride: (2, 2)),
        Case(image: (4, 21), window: (2, 3), stride: (1, 1)), Case(image: (3, 67), window: (2, 2), stride: (1, 3)),
    ]
    private let planes = [2, 3]

    @Test(arguments: cases) func givesEachGradientToTheFirstWinner(_ test: Case) throws {
        let (height, width) = (test.image.0, test.image.1)
        var random = SplitMix(state: 3)
        // Few different values: ties are common.
        let x = (0..<6 * height * width).map { _ in Double(random.next() % 4) }
        let g = (0..<6 * test.count.0 * test.count.1).map { _ in Double(random.next() % 9) - 4 }
        var y: [Double] = []
        var want = Array(repeating: 0.0, count: x.count)
        for plane in 0..<6 {
            for row in 0..<test.count.0 {
                for column in 0..<test.count.1 {
                    var best: (value: Double, place: Int)?
                    for i in 0..<test.window.0 {
                        for j in 0..<test.window.1 {
                            let (r, c) = (
                                row * test.stride.0 + i - test.padding.0, column * test.stride.1 + j - test.padding.1
                            )
                            guard (0..<height).contains(r), (0..<width).contains(c) else { continue }
                            let place = (plane * height + r) * width + c
                            if best == nil || x[place] > best!.value { best = (x[place], place) }
                        }
                    }
                    want[best!.place] += g[y.count]
                    y.append(best!.value)
                }
            }
        }
        let plan = try Plan(program(test).function(["dx"]), blobs: NoBlobs(), options: PlanOptions(workers: 2))
        let shape = planes + [test.count.0, test.count.1]
        Tensor.floats(planes + [height, width], x).write(to: plan.buffer(named: "x")!)
        Tensor.floats(shape, y).write(to: plan.buffer(named: "y")!)
        Tensor.floats(shape, g).write(to: plan.buffer(named: "g")!)
        try plan.run()
        let result = Tensor(plan.buffer(named: "dx")!)
        #expect(result.difference(from: .floats(planes + [height, width], want), tolerance: 0) == nil, "\(test)")
        let isPadded = test.padding != (0, 0)
        #expect(plan.statistics.instructions <= (isPadded ? 7 : 1), "\(test): \(plan.statistics)")
    }

    /// Comparisons, masks, interleaved zeros and sums, window place by window place.
    private func program(_ test: Case) -> ProgramBuilder {
        var p = ProgramBuilder()
        let image = planes + [test.image.0, test.image.1]
        let windows = planes + [test.count.0, test.count.1]
        let padded = planes + [test.image.0 + 2 * test.padding.0, test.image.1 + 2 * test.padding.1]
        p.input("x", .floats(image, []))
        p.input("y", .floats(windows, []))
        p.input("g", .floats(windows, []))
        p.const("fp32", string: "fp32")
        func ints(_ values: [Int]) -> Binding { .ints(values.map(Double.init)) }
        let pads = [test.padding.0, test.padding.0, test.padding.1, test.padding.1]
        var source = "x"
        if test.padding != (0, 0) {
            p.add("pad", ["x": "x", "pad": ints(pads), "constant_val": .float(-.infinity)], "xp", padded)
            source = "xp"
        }
        var free: String?
        var total: String?
        for i in 0..<test.window.0 {
            for j in 0..<test.window.1 {
                let k = "\(i)_\(j)"
                let end = [i + (test.count.0 - 1) * test.stride.0 + 1, j + (test.count.1 - 1) * test.stride.1 + 1]
                p.add(
                    "slice_by_index",
                    [
                        "x": .name(source), "begin": ints([0, 0, i, j]), "end": ints(planes + end),
                        "stride": ints([1, 1, test.stride.0, test.stride.1]),
                    ], "corner" + k, windows)
                p.add("equal", ["x": .name("corner" + k), "y": "y"], "hit" + k, .bool, windows)
                p.add("cast", ["x": .name("hit" + k), "dtype": "fp32"], "one" + k, windows)
                var won = "one" + k
                if let free {
                    p.add("mul", ["x": .name(won), "y": .name(free)], "won" + k, windows)
                    won = "won" + k
                }
                p.add(
                    "sub", ["x": free.map { .name($0) } ?? .float(1), "y": .name(won)], "free" + k, windows)
                free = "free" + k
                p.add("equal", ["x": .name(won), "y": .float(1)], "is" + k, .bool, windows)
                p.add("select", ["cond": .name("is" + k), "a": "g", "b": .float(0)], "part" + k, windows)
                let spread = addSpread(&p, "part" + k, test, (i, j), padded)
                if let sum = total {
                    p.add("add", ["x": .name(sum), "y": .name(spread)], "total" + k, padded)
                    total = "total" + k
                } else {
                    total = spread
                }
            }
        }
        p.add(
            "slice_by_size",
            ["x": .name(total!), "begin": ints([0, 0, test.padding.0, test.padding.1]), "size": ints(image)], "dx",
            image)
        return p
    }

    /// The part with zeros between its rows and columns, at its place in an image of zeros.
    private func addSpread(
        _ p: inout ProgramBuilder, _ part: String, _ test: Case, _ at: (Int, Int), _ padded: [Int]
    ) -> String {
        func ints(_ values: [Int]) -> Binding { .ints(values.map(Double.init)) }
        var name = part
        var size = [6, test.count.0, test.count.1]
        for (axis, step) in [(2, test.stride.1), (1, test.stride.0)] where step > 1 && size[axis] > 1 {
            let outer = size[..<axis].reduce(1, *)
            let inner = size[(axis + 1)...].reduce(1, *)
            let full = size[axis] * step
            let kept = full - step + 1
            p.add(
                "reshape", ["x": .name(name), "shape": ints([outer, size[axis], 1, inner])], "\(name)a\(axis)",
                [outer, size[axis], 1, inner])
            p.add(
                "pad", ["x": .name("\(name)a\(axis)"), "pad": ints([0, 0, 0, 0, 0, step - 1, 0, 0])], "\(name)b\(axis)",
                [outer, size[axis], step, inner])
            p.add(
                "reshape", ["x": .name("\(name)b\(axis)"), "shape": ints([outer, full, inner])], "\(name)c\(axis)",
                [outer, full, inner])
            p.add(
                "slice_by_size",
                ["x": .name("\(name)c\(axis)"), "begin": ints([0, 0, 0]), "size": ints([outer, kept, inner])],
                "\(name)d\(axis)", [outer, kept, inner])
            name = "\(name)d\(axis)"
            size[axis] = kept
        }
        let shape = planes + size[1...]
        p.add("reshape", ["x": .name(name), "shape": ints(shape)], "\(name)e", shape)
        let pads = [at.0, padded[2] - at.0 - shape[2], at.1, padded[3] - at.1 - shape[3]]
        p.add("pad", ["x": .name("\(name)e"), "pad": ints(pads)], "\(name)f", padded)
        return "\(name)f"
    }
}
