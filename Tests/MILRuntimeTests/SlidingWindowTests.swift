// Slices whose place is computed in each run: one plan takes all places, and errors come before anything is written.
import MILFormat
import Testing

@testable import MILRuntime

struct SlidingWindowTests {
    private let shape = [2, 8, 3]

    /// One row of a cache is written and read at `place`; the second slice's size is left open.
    private func decoder() throws -> Evaluator {
        var p = ProgramBuilder()
        p.opset = 8
        p.input("row", .floats([2, 1, 3], []))
        p.input("place", .ints([1], []))
        p.inputs.append(NamedType(name: "cache", type: .state(TensorType(.float32, shape: shape))))
        func concat(_ name: String, _ values: [Binding]) {
            p.operations.append(
                Operation(
                    type: "concat", inputs: ["values": values, "axis": [.int(0)], "interleave": [.bool(false)]],
                    outputs: [NamedType(name: name, type: .tensor(TensorType(.int32, shape: [3])))]))
        }
        p.add("add", ["x": "place", "y": .ints([1])], "next", .int32, [1])
        concat("begin", [.ints([0]), "place", .ints([0])])
        concat("end", [.ints([2]), "next", .ints([3])])
        p.add("read_state", ["input": "cache"], "old", shape)
        p.add("slice_update", ["x": "old", "update": "row", "begin": "begin", "end": "end"], "new", shape)
        p.operations.append(
            Operation(type: "write_state", inputs: ["input": ["cache"], "data": ["new"]], outputs: []))
        p.add("slice_by_size", ["x": "new", "begin": "begin", "size": .ints([2, 1, 3])], "part", [2, 1, 3])
        p.operations.append(
            Operation(
                type: "slice_by_index", inputs: ["x": ["new"], "begin": ["begin"], "end": ["end"]],
                outputs: [
                    NamedType(
                        name: "open",
                        type: .tensor(TensorType(.float32, [.fixed(2), .unknown(variadic: false), .fixed(3)])))
                ]))
        p.add("add", ["x": "part", "y": "open"], "y", [2, 1, 3])
        return try Evaluator(p.function(["y"]), blobs: NoBlobs(), options: .init(workers: 1))
    }

    private func run(_ evaluator: Evaluator, _ place: Double, _ cache: Storage) throws -> Tensor {
        let row = Tensor.floats([2, 1, 3], (0..<6).map { 10 * place + Double($0) })
        var inputs: [String: Storage] = [:]
        for (name, tensor) in [("row", row), ("place", .ints([1], [place]))] {
            inputs[name] = try Storage(type: tensor.type, shape: tensor.shape)
            tensor.write(to: inputs[name]!)
        }
        guard case .tensor(let y)? = try evaluator.run(inputs, states: ["cache": cache])["y"] else {
            throw RuntimeError.stopped
        }
        return Tensor(y)
    }

    @Test func onePlanTakesAllPlaces() throws {
        let evaluator = try decoder()
        let cache = try Storage(type: .float32, shape: shape)
        var want = Array(repeating: 0.0, count: 48)
        var planned: Set<Int> = []
        for place in [3, 0, 7, 4, 3, 5] {
            let y = try run(evaluator, Double(place), cache)
            for index in 0..<6 { want[index / 3 * 24 + place * 3 + index % 3] = Double(10 * place + index) }
            #expect(y == .floats([2, 1, 3], (0..<6).map { Double(20 * place + 2 * $0) }))
            #expect(Tensor(cache) == .floats(shape, want))
            planned.insert(evaluator.segments.bytes)
        }
        #expect(planned.count == 1)
    }

    @Test(arguments: [8.0, -1, -9, 2_147_483_647]) func refusesOtherPlaces(_ place: Double) throws {
        let evaluator = try decoder()
        let cache = try Storage(type: .float32, shape: shape)
        #expect(throws: RuntimeError.self) { try run(evaluator, place, cache) }
        #expect(Tensor(cache) == .floats(shape, Array(repeating: 0, count: 48)))
        #expect(try run(evaluator, 1, cache).values == [20, 22, 24, 26, 28, 30])
    }

    /// What begin, end and the masks say, for Python's rules about them.
    struct Case {
        var begin: [Double]
        var end: [Double]
        var beginMask = [false, false]
        var endMask = [false, false]
        var squeeze = [false, false]
        var want: [Double]?
    }

    static let cases = [
        Case(begin: [1, 2], end: [3, 4], want: [12, 13, 22, 23]),
        Case(begin: [-3, -2], end: [-1, 9], want: [13, 14, 23, 24]),
        Case(begin: [9, 2], end: [9, 4], beginMask: [true, false], endMask: [false, false], want: nil),
        Case(begin: [9, 9], end: [2, 2], beginMask: [true, true], want: [0, 1, 10, 11]),
        Case(begin: [2, 3], end: [0, 0], endMask: [true, true], want: [23, 24, 33, 34]),
        Case(begin: [1, 2], end: [4, 4], want: nil),
        Case(begin: [3, 2], end: [1, 4], want: nil),
        Case(begin: [-4, 1], end: [0, 3], squeeze: [true, false], want: [1, 2]),
        Case(begin: [4, 1], end: [0, 3], squeeze: [true, false], want: nil),
    ]

    @Test(arguments: cases.indices) func followsPythonsRules(_ index: Int) throws {
        let test = Self.cases[index]
        let shape = test.squeeze[0] ? [2] : [2, 2]
        var p = ProgramBuilder()
        p.input("x", .floats([4, 5], []))
        p.input("begin", .ints([2], []))
        p.input("end", .ints([2], []))
        func mask(_ values: [Bool]) -> Binding { .literal(Tensor(.bool, [2], values.map { $0 ? 1 : 0 })) }
        p.add(
            "slice_by_index",
            [
                "x": "x", "begin": "begin", "end": "end", "begin_mask": mask(test.beginMask),
                "end_mask": mask(test.endMask), "squeeze_mask": mask(test.squeeze),
            ], "y", shape)
        let plan = try Plan(p.function(["y"]), blobs: NoBlobs(), options: PlanOptions(workers: 2))
        Tensor.floats([4, 5], (0..<20).map { Double($0 / 5 * 10 + $0 % 5) }).write(to: plan.buffer(named: "x")!)
        Tensor.ints([2], test.begin).write(to: plan.buffer(named: "begin")!)
        Tensor.ints([2], test.end).write(to: plan.buffer(named: "end")!)
        if let want = test.want {
            try plan.run()
            #expect(Tensor(plan.buffer(named: "y")!) == .floats(shape, want))
        } else {
            #expect(throws: RuntimeError.self) { try plan.run() }
        }
    }
}
