// Random chains of paddings, slices, reshapes and transposes: paddings of parts of paddings are composed, and must hold
// just what doing them one by one gives.
import MILFormat
import Testing

@testable import MILRuntime

struct PlacementTests {
    @Test(arguments: 0..<400) func composesPaddings(seed: Int) throws {
        var random = SplitMix(state: UInt64(seed))
        var p = ProgramBuilder()
        let shape = [[2, 3, 4], [6, 5], [2, 2, 3, 3]].randomElement(using: &random)!
        var values = (0..<shape.reduce(1, *)).map { Double($0 + 1) }
        var current = shape
        let input = Tensor.floats(shape, values)
        p.input("x", input)
        var name = "x"
        for step in 0..<7 where values.count < 4000 {
            let next = "v\(step)"
            switch random.next() % 5 {
            case 0, 1:
                let pads = current.map { _ in (Int(random.next() % 3), Int(random.next() % 3)) }
                let fill = random.next() % 4 == 0 ? 7.0 : 0
                (values, current) = pad(values, current, pads, fill)
                let list = pads.flatMap { [Double($0.0), Double($0.1)] }
                p.add("pad", ["x": .name(name), "pad": .ints(list), "constant_val": .float(fill)], next, current)
            case 2:
                let begin = current.map { Int(random.next() % UInt64(max($0 / 2, 1))) }
                let end = zip(current, begin).map { size, first in first + 1 + Int(random.next() % UInt64(size - first))
                }
                let stride = current.map { _ in Int(random.next() % 2) + 1 }
                (values, current) = slice(values, current, begin, end, stride)
                func list(_ values: [Int]) -> Binding { .ints(values.map(Double.init)) }
                p.add(
                    "slice_by_index",
                    ["x": .name(name), "begin": list(begin), "end": list(end), "stride": list(stride)], next, current)
            case 3:
                current = reshaped(current, &random)
                p.add("reshape", ["x": .name(name), "shape": .ints(current.map(Double.init))], next, current)
            default:
                guard current.count > 1 else { continue }
                let axis = Int(random.next() % UInt64(current.count - 1))
                (values, current) = swap(values, current, axis)
                var order = Array(0..<current.count)
                order.swapAt(axis, axis + 1)
                p.add("transpose", ["x": .name(name), "perm": .ints(order.map(Double.init))], next, current)
            }
            name = next
        }
        p.add("identity", ["x": .name(name)], "y", current)
        let plan = try Plan(p.function(["y"]), blobs: NoBlobs(), options: PlanOptions(workers: 1))
        input.write(to: plan.buffer(named: "x")!)
        try plan.run()
        let difference = Tensor(plan.buffer(named: "y")!).difference(from: .floats(current, values), tolerance: 0)
        #expect(difference == nil, "\(p.operations.map(\.type)): \(difference ?? "")")
    }

    /// Every index of a shape in row-major order.
    private func indices(_ shape: [Int]) -> [[Int]] {
        shape.reduce([[]]) { prefixes, size in prefixes.flatMap { prefix in (0..<size).map { prefix + [$0] } } }
    }

    private func offset(_ index: [Int], _ shape: [Int]) -> Int {
        zip(index, shape).reduce(0) { $0 * $1.1 + $1.0 }
    }

    private func pad(_ x: [Double], _ shape: [Int], _ pads: [(Int, Int)], _ fill: Double) -> ([Double], [Int]) {
        let result = zip(shape, pads).map { $0 + $1.0 + $1.1 }
        let values = indices(result).map { index in
            let source = zip(index, pads).map { $0 - $1.0 }
            let isInside = zip(source, shape).allSatisfy { $0 >= 0 && $0 < $1 }
            return isInside ? x[offset(source, shape)] : fill
        }
        return (values, result)
    }

    private func slice(
        _ x: [Double], _ shape: [Int], _ begin: [Int], _ end: [Int], _ stride: [Int]
    ) -> ([Double], [Int]) {
        let result = shape.indices.map { (end[$0] - begin[$0] + stride[$0] - 1) / stride[$0] }
        let values = indices(result).map { index in
            x[offset(index.indices.map { begin[$0] + index[$0] * stride[$0] }, shape)]
        }
        return (values, result)
    }

    private func swap(_ x: [Double], _ shape: [Int], _ axis: Int) -> ([Double], [Int]) {
        var result = shape
        result.swapAt(axis, axis + 1)
        let values = indices(result).map { index in
            var source = index
            source.swapAt(axis, axis + 1)
            return x[offset(source, shape)]
        }
        return (values, result)
    }

    /// Another shape of the same count: two dimensions as one, or one as two.
    private func reshaped(_ shape: [Int], _ random: inout SplitMix) -> [Int] {
        var result = shape
        if shape.count > 1, shape.count > 4 || random.next() % 2 == 0 {
            let axis = Int(random.next() % UInt64(shape.count - 1))
            result[axis] *= result.remove(at: axis + 1)
        } else if let axis = shape.indices.filter({ shape[$0] % 2 == 0 }).randomElement(using: &random) {
            result[axis] = 2
            result.insert(shape[axis] / 2, at: axis + 1)
        } else {
            result.append(1)
        }
        return result
    }
}
