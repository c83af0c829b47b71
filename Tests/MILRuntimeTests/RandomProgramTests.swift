// Random programs of maps, folds, products, reshapes and transposes, against the same computed here one by one: whatever
// is fused, reordered, laid over or updated in place must not change a value.
import MILFormat
import Testing

@testable import MILRuntime

struct RandomProgramTests {
    @Test(arguments: 0..<300) func isRightHoweverItIsFused(seed: Int) throws {
        var random = SplitMix(state: UInt64(seed))
        var program = RandomProgram(&random)
        for _ in 0..<40 { program.addOperation(&random) }
        try program.check(&random)
    }
}

private struct RandomProgram {
    private typealias Named = (name: String, tensor: Tensor)
    private static let largestCount = 20000
    /// Sums stay exact in single precision.
    private static let largestValue = 1e5

    private var p = ProgramBuilder()
    private var values: [Named] = []
    private var inputCount = 0

    init(_ random: inout SplitMix) {
        // Small sizes fit one tile, large ones need many tiles and chunks.
        let (rows, columns) = [(4, 6), (12, 10), (40, 300), (600, 4)].randomElement(using: &random)!
        let image = [rows, columns]
        for shape in [image, image, [columns], [rows, 1], [1], [2, rows / 2, columns], [rows, 1]] {
            let tensor = Tensor.floats(
                shape, (0..<shape.reduce(1, *)).map { _ in Double(random.next() % 17) / 4 - 2 })
            p.input("in\(inputCount)", tensor)
            values.append(("in\(inputCount)", tensor))
            inputCount += 1
        }
    }

    mutating func addOperation(_ random: inout SplitMix) {
        let x = values.randomElement(using: &random)!
        let y = values.randomElement(using: &random)!
        let name = "v\(values.count)"
        switch random.next() % 10 {
        case 0, 1, 2: reduce(x, name, &random)
        case 3: transpose(x, name)
        case 4: reshape(x, name)
        case 5:
            keep(name, x.tensor.shape, x.tensor.values.map { max($0, 0) }) {
                $0.add("relu", ["x": .name(x.name)], name, $1)
            }
        case 6 where random.next() % 2 == 0: multiply(x, y, name)
        case 7: gate(x, y, name)
        default: combine(x, y, name, &random)
        }
    }

    /// Adds the operation if its values are small enough.
    private mutating func keep(
        _ name: String, _ shape: [Int], _ result: [Double], _ add: (inout ProgramBuilder, [Int]) -> Void
    ) {
        guard result.allSatisfy({ abs($0) < Self.largestValue }) else { return }
        add(&p, shape)
        values.append((name, .floats(shape, result)))
    }

    private func spread(_ tensor: Tensor, to shape: [Int]) -> [Double] {
        var result: [Double] = []
        View(buffer: 0, type: .float32, shape: tensor.shape).broadcast(to: shape).forEachOffset {
            result.append(tensor.values[$0])
        }
        return result
    }

    private mutating func transpose(_ x: Named, _ name: String) {
        guard x.tensor.shape.count == 2 else { return }
        let (rows, columns) = (x.tensor.shape[0], x.tensor.shape[1])
        let moved = (0..<rows * columns).map { x.tensor.values[$0 % rows * columns + $0 / rows] }
        keep(name, [columns, rows], moved) {
            $0.add("transpose", ["x": .name(x.name), "perm": .ints([1, 0])], name, $1)
        }
    }

    private mutating func reshape(_ x: Named, _ name: String) {
        let shape = [2, x.tensor.values.count / 2]
        guard shape[0] * shape[1] == x.tensor.values.count else { return }
        keep(name, shape, x.tensor.values) {
            $0.add("reshape", ["x": .name(x.name), "shape": .ints(shape.map(Double.init))], name, $1)
        }
    }

    private mutating func combine(_ x: Named, _ y: Named, _ name: String, _ random: inout SplitMix) {
        guard let shape = broadcastShape(x.tensor.shape, y.tensor.shape), shape.reduce(1, *) <= Self.largestCount else {
            return
        }
        let op = ["maximum", "sub", "add"].randomElement(using: &random)!
        let result = zip(spread(x.tensor, to: shape), spread(y.tensor, to: shape)).map { a, b in
            op == "maximum" ? max(a, b) : op == "sub" ? a - b : a + b
        }
        keep(name, shape, result) { $0.add(op, ["x": .name(x.name), "y": .name(y.name)], name, $1) }
    }

    /// y where x > 0, as derivatives of relu are written.
    private mutating func gate(_ x: Named, _ y: Named, _ name: String) {
        guard let shape = broadcastShape(x.tensor.shape, y.tensor.shape), shape.reduce(1, *) <= Self.largestCount else {
            return
        }
        let result = zip(spread(x.tensor, to: shape), spread(y.tensor, to: shape)).map { $0 > 0 ? $1 : 0 }
        keep(name, shape, result) {
            $0.add("greater", ["x": .name(x.name), "y": .float(0)], name + "m", .bool, x.tensor.shape)
            $0.const(name + "t", string: "fp32")
            $0.add("cast", ["x": .name(name + "m"), "dtype": .name(name + "t")], name + "c", x.tensor.shape)
            $0.add("mul", ["x": .name(y.name), "y": .name(name + "c")], name, $1)
        }
    }

    private mutating func multiply(_ x: Named, _ y: Named, _ name: String) {
        let (a, b) = (x.tensor, y.tensor)
        guard a.shape.count == 2, b.shape.count == 2, a.shape[1] == b.shape[1], a.shape[1] <= 12,
            a.shape[0] * b.shape[0] <= 4000, (a.values + b.values).allSatisfy({ abs($0) < 50 })
        else { return }
        let (rows, inner, columns) = (a.shape[0], a.shape[1], b.shape[0])
        var product: [Double] = []
        for i in 0..<rows {
            for j in 0..<columns {
                product.append((0..<inner).reduce(0) { $0 + a.values[i * inner + $1] * b.values[j * inner + $1] })
            }
        }
        keep(name, [rows, columns], product) {
            $0.add("matmul", ["x": .name(x.name), "y": .name(y.name), "transpose_y": .bool(true)], name, $1)
        }
    }

    private mutating func reduce(_ x: Named, _ name: String, _ random: inout SplitMix) {
        let rank = x.tensor.shape.count
        let op = ["reduce_max", "reduce_min", "reduce_sum"].randomElement(using: &random)!
        let axes = [Array(0..<rank), [rank - 1], [0]].randomElement(using: &random)!
        var shape = x.tensor.shape
        for axis in axes { shape[axis] = 1 }
        let start = op == "reduce_max" ? -Double.infinity : op == "reduce_min" ? .infinity : 0
        var folded = Array(repeating: start, count: shape.reduce(1, *))
        var place = 0
        View(buffer: 0, type: .float32, shape: shape).broadcast(to: x.tensor.shape).forEachOffset { offset in
            let value = x.tensor.values[place]
            place += 1
            switch op {
            case "reduce_max": folded[offset] = max(folded[offset], value)
            case "reduce_min": folded[offset] = min(folded[offset], value)
            default: folded[offset] += value
            }
        }
        let list = Binding.ints(axes.map(Double.init))
        keep(name, shape, folded) {
            $0.add(op, ["x": .name(x.name), "axes": list, "keep_dims": .bool(true)], name, $1)
        }
    }

    /// All inputs are resident, and some values take the place of residents of their shape.
    func check(_ random: inout SplitMix) throws {
        let computed = values.dropFirst(inputCount)
        var residents: [String: Storage] = [:]
        var donated: [String: String] = [:]
        for (name, tensor) in values.prefix(inputCount) {
            let storage = try Storage(type: .float32, shape: tensor.shape)
            tensor.write(to: storage)
            residents[name] = storage
            let candidates = computed.filter { $0.tensor.shape == tensor.shape && !donated.values.contains($0.name) }
            if let value = candidates.randomElement(using: &random) { donated[name] = value.name }
        }
        let results = computed.filter { _ in random.next() % 4 == 0 }.filter { !donated.values.contains($0.name) }
        let options = PlanOptions(residents: residents, donated: donated, workers: 2)
        let plan = try Plan(
            p.function(results.map(\.name) + donated.values.sorted()), blobs: NoBlobs(), options: options)
        try plan.run()
        for (name, tensor) in results {
            let difference = Tensor(plan.buffer(named: name)!).difference(from: tensor, tolerance: 0)
            #expect(difference == nil, "\(name): \(difference ?? "")")
        }
        for (input, output) in donated {
            let want = values.first { $0.name == output }!.tensor
            let difference = Tensor(residents[input]!).difference(from: want, tolerance: 0)
            #expect(difference == nil, "\(output) over \(input): \(difference ?? "")")
        }
    }
}

struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
