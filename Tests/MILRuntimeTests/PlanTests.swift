// Whole programs: residents, donated pairs, ranges, errors, sharing of memory.
import MILFormat
import RLXKernels
import Testing

@testable import MILRuntime

struct PlanTests {
    private func storage(_ tensor: Tensor) throws -> Storage {
        let storage = try Storage(type: tensor.type, shape: tensor.shape)
        tensor.write(to: storage)
        return storage
    }

    /// loss = sum((x W - t)^2); W' = W - lr dW, all gradients by hand.
    private func linearRegression() -> Function {
        var p = ProgramBuilder()
        p.input("x", .floats([8, 3], []))
        p.input("t", .floats([8, 1], []))
        p.input("W", .floats([3, 1], []))
        p.input("lr", .floats([1], []))
        p.add("matmul", ["x": "x", "y": "W"], "z", [8, 1])
        p.add("sub", ["x": "z", "y": "t"], "d", [8, 1])
        p.add("square", ["x": "d"], "d2", [8, 1])
        p.add("reduce_sum", ["x": "d2"], "loss", [])
        p.add("mul", ["x": "d", "y": .float(2)], "dz", [8, 1])
        p.add("matmul", ["x": "x", "y": "dz", "transpose_x": .bool(true)], "dW", [3, 1])
        p.add("mul", ["x": "lr", "y": "dW"], "step", [3, 1])
        p.add("sub", ["x": "W", "y": "step"], "new_W", [3, 1])
        return p.function(["loss", "new_W"])
    }

    @Test(arguments: [1, 2]) func learnsALinearRegression(workers: Int) throws {
        // numpy.random.default_rng(0).uniform(-1, 1, (8, 3)) and x @ (1, -2, 0.5)
        let x: [Double] = [
            0.27392337, -0.46042657, -0.91805295, -0.96694473, 0.62654048, 0.82551115, 0.21327155, 0.45899312,
            0.08724998, 0.87014485, 0.63170711, -0.99452299, 0.71480855, -0.93282885, 0.45931089, -0.64868876,
            0.72635784, 0.08292244, -0.40057622, -0.15462556, -0.94336066, -0.75143345, 0.34124883, 0.29437902,
        ]
        let t = (0..<8).map { (row: Int) -> Double in
            let first = x[3 * row] - 2 * x[3 * row + 1]
            return first + 0.5 * x[3 * row + 2]
        }
        let weights = try storage(.floats([3, 1], [0, 0, 0]))
        let plan = try Plan(
            linearRegression(), blobs: NoBlobs(),
            options: PlanOptions(residents: ["W": weights], donated: ["W": "new_W"], workers: workers))
        #expect(plan.inputs.map(\.name) == ["x", "t", "lr"])
        #expect(plan.outputs.map(\.name) == ["loss"])
        Tensor.floats([8, 3], x).write(to: plan.buffer(named: "x")!)
        Tensor.floats([8, 1], t).write(to: plan.buffer(named: "t")!)
        Tensor.floats([1], [0.1]).write(to: plan.buffer(named: "lr")!)
        let loss = plan.buffer(named: "loss")!
        try plan.run()
        #expect(abs(Tensor(loss).values[0] - 19.15) < 0.01)
        for _ in 0..<59 { try plan.run() }
        #expect(Tensor(loss).values[0] < 1e-10)
        #expect(Tensor(weights).difference(from: .floats([3, 1], [1, -2, 0.5]), tolerance: 1e-5) == nil)
        #expect(plan.buffer(named: "loss") === loss)
    }

    /// a' = b, b' = a + b: both read the old values.
    @Test func swapsResidents() throws {
        var p = ProgramBuilder()
        p.input("a", .floats([3], []))
        p.input("b", .floats([3], []))
        p.add("identity", ["x": "b"], "next_a", [3])
        p.add("add", ["x": "a", "y": "b"], "next_b", [3])
        let a = try storage(.floats([3], [0, 1, 2]))
        let b = try storage(.floats([3], [1, 1, 1]))
        let options = PlanOptions(residents: ["a": a, "b": b], donated: ["a": "next_a", "b": "next_b"], workers: 1)
        let plan = try Plan(p.function(["next_a", "next_b"]), blobs: NoBlobs(), options: options)
        for _ in 0..<3 { try plan.run() }
        #expect(Tensor(a).values == [2, 3, 4])
        #expect(Tensor(b).values == [3, 5, 7])
    }

    @Test func exchangesResidents() throws {
        var p = ProgramBuilder()
        p.input("a", .floats([2], []))
        p.input("b", .floats([2], []))
        p.add("identity", ["x": "b"], "next_a", [2])
        p.add("identity", ["x": "a"], "next_b", [2])
        let a = try storage(.floats([2], [1, 2]))
        let b = try storage(.floats([2], [3, 4]))
        let options = PlanOptions(residents: ["a": a, "b": b], donated: ["a": "next_a", "b": "next_b"], workers: 1)
        try Plan(p.function(["next_a", "next_b"]), blobs: NoBlobs(), options: options).run()
        #expect(Tensor(a).values == [3, 4])
        #expect(Tensor(b).values == [1, 2])
    }

    /// w' = w^T w: every element of the new value needs all of the old one.
    @Test func updatesThatNeedTheWholeOldValueGoThroughACopy() throws {
        var p = ProgramBuilder()
        p.input("w", .floats([2, 2], []))
        p.add("matmul", ["x": "w", "y": "w", "transpose_x": .bool(true)], "new_w", [2, 2])
        p.add("reduce_sum", ["x": "w"], "sum", [])
        let w = try storage(.floats([2, 2], [1, 2, 3, 4]))
        let options = PlanOptions(residents: ["w": w], donated: ["w": "new_w"], workers: 1)
        let plan = try Plan(p.function(["new_w", "sum"]), blobs: NoBlobs(), options: options)
        try plan.run()
        #expect(Tensor(w).values == [10, 14, 14, 20])
        #expect(Tensor(plan.buffer(named: "sum")!).values == [10])
    }

    /// w' = transpose(w) + w: elementwise, but not at the same index.
    @Test func updatesThatPermuteTheOldValue() throws {
        var p = ProgramBuilder()
        p.input("w", .floats([2, 2], []))
        p.add("transpose", ["x": "w", "perm": .ints([1, 0])], "wt", [2, 2])
        p.add("add", ["x": "w", "y": "wt"], "new_w", [2, 2])
        let w = try storage(.floats([2, 2], [1, 2, 3, 4]))
        let options = PlanOptions(residents: ["w": w], donated: ["w": "new_w"], workers: 1)
        try Plan(p.function(["new_w"]), blobs: NoBlobs(), options: options).run()
        #expect(Tensor(w).values == [2, 5, 5, 8])
    }

    /// A cache in f16 of which two rows are written, each by way of f32; the product between them sees the first as it
    /// was rounded. A reader of the first update that comes last leaves no place for the second.
    @Test(arguments: [false, true]) func updatesOfPartsGoWhereTheInputWasRead(isReadLate: Bool) throws {
        var p = ProgramBuilder()
        p.input("cache", Tensor(.float16, [3, 2], []))
        p.input("u", .floats([1, 2], []))
        p.const("f16", string: "fp16")
        p.const("f32", string: "fp32")
        func update(_ x: Binding, _ row: Double, _ update: Binding, _ result: String) {
            let arguments = ["x": x, "update": update, "begin": .ints([row, 0]), "end": .ints([row + 1, 2])]
            p.add("slice_update", arguments, result, [3, 2])
        }
        p.add("cast", ["x": "cache", "dtype": "f32"], "wide", [3, 2])
        update("wide", 1, "u", "first")
        p.add("cast", ["x": "first", "dtype": "f16"], "half", .float16, [3, 2])
        p.add("cast", ["x": "half", "dtype": "f32"], "back", [3, 2])
        p.add("slice_by_index", ["x": "back", "begin": .ints([0, 0]), "end": .ints([2, 2])], "rows", [2, 2])
        p.add("matmul", ["x": "u", "y": "rows", "transpose_y": .bool(true)], "scores", [1, 2])
        p.add("mul", ["x": "u", "y": .float(2)], "twice", [1, 2])
        update("back", 2, "twice", "second")
        p.add("cast", ["x": "second", "dtype": "f16"], "new", .float16, [3, 2])
        if isReadLate { p.add("reduce_max", ["x": "back"], "late", []) }
        let outputs = ["new", "scores"] + (isReadLate ? ["late"] : [])
        let plan = try Plan(
            p.function(outputs), blobs: NoBlobs(), options: PlanOptions(updated: ["cache": "new"], workers: 2))
        Tensor.floats([1, 2], [1.0 / 3, 3]).write(to: plan.buffer(named: "u")!)
        let third = Double(rlxk_half_to_float(rlxk_float_to_half(1.0 / 3)))
        for start in [4.0, 8] {
            let cache = try storage(Tensor(.float16, [3, 2], [start, 1, 2, 2, 2, 2]))
            try plan.read(0, from: UnsafeRawBufferPointer(cache.bytes))
            try plan.run()
            #expect(Tensor(cache).values == [start, 1, third, 3, 2 * third, 6])
            let scores = [start / 3 + 3, third / 3 + 9]
            let got = Tensor(plan.buffer(named: "scores")!)
            #expect(got.difference(from: .floats([1, 2], scores), tolerance: 1e-6) == nil)
            if isReadLate { #expect(Tensor(plan.buffer(named: "late")!).values == [start]) }
        }
    }

    /// clip(x w + b) as one launch, of a product with few columns and one with many, and of a convolution.
    @Test(arguments: ["avx512", "avx2", "baseline", "neon"]) func clipsInTheProduct(instructionSet: String) throws {
        let x = [1, 2, -3, Double.infinity, .nan, 0]
        for columns in [2, 5] {
            var p = ProgramBuilder()
            p.input("x", .floats([6, 1], []))
            let weights = (0..<columns).map { Double($0 + 1) }
            p.add(
                "linear",
                [
                    "x": "x", "weight": .literal(.floats([columns, 1], weights)),
                    "bias": .floats(Array(repeating: 1, count: columns)),
                ], "z", [6, columns])
            p.add("clip", ["x": "z", "alpha": .float(-0.5), "beta": .float(4)], "y", [6, columns])
            let y = x.flatMap { x in weights.map { x.isNaN ? x : min(max(x * $0 + 1, -0.5), 4) } }
            try check(p, x: x, gives: Tensor(.float32, [6, columns], y), instructionSet)
        }
        var p = ProgramBuilder()
        p.input("x", .floats([1, 1, 2, 3], []))
        p.add("conv", ["x": "x", "weight": .literal(.floats([1, 1, 1, 1], [2]))], "z", [1, 1, 2, 3])
        p.add("relu6", ["x": "z"], "y", [1, 1, 2, 3])
        let y = x.map { $0.isNaN ? $0 : min(max(2 * $0, 0), 6) }
        try check(p, x: x, gives: Tensor(.float32, [1, 1, 2, 3], y), instructionSet)
    }

    private func check(_ p: ProgramBuilder, x: [Double], gives y: Tensor, _ instructionSet: String) throws {
        let plan = try Plan(p.function(["y"]), blobs: NoBlobs())
        #expect(plan.statistics.instructions == 1)
        Tensor.floats([x.count], x).write(to: plan.buffer(named: "x")!)
        guard plan.run(instructionSet: instructionSet) else { return }
        #expect(Tensor(plan.buffer(named: "y")!).difference(from: y, tolerance: 1e-6) == nil)
    }

    @Test func oneValueAsSeveralOutputsAndInputsAsOutputs() throws {
        var p = ProgramBuilder()
        p.input("x", .floats([2], []))
        p.add("relu", ["x": "x"], "r", [2])
        p.add("identity", ["x": "r"], "s", [2])
        let plan = try Plan(p.function(["r", "s", "r"]), blobs: NoBlobs())
        Tensor.floats([2], [-1, 2]).write(to: plan.buffer(named: "x")!)
        try plan.run()
        #expect(Tensor(plan.buffer(named: "r")!).values == [0, 2])
        #expect(Tensor(plan.buffer(named: "s")!).values == [0, 2])
    }

    @Test func rangesAreCheckedBeforeAnythingChanges() throws {
        var p = ProgramBuilder()
        p.input("ids", .ints([3], []))
        p.input("n", .ints([3], []))
        p.add("add", ["x": "n", "y": "ids"], "new_n", .int32, [3])
        let n = try storage(.ints([3], [5, 5, 5]))
        let options = PlanOptions(residents: ["n": n], donated: ["n": "new_n"], ranges: ["ids": 0..<10], workers: 1)
        let plan = try Plan(p.function(["new_n"]), blobs: NoBlobs(), options: options)
        Tensor.ints([3], [0, 10, 3]).write(to: plan.buffer(named: "ids")!)
        #expect(throws: RuntimeError.outOfRange(input: "ids", index: 1, value: 10, range: 0..<10)) { try plan.run() }
        #expect(Tensor(n).values == [5, 5, 5])
        Tensor.ints([3], [0, 9, 3]).write(to: plan.buffer(named: "ids")!)
        try plan.run()
        #expect(Tensor(n).values == [5, 14, 8])
    }

    @Test func readsFeedsFromTheCallersMemory() throws {
        var p = ProgramBuilder()
        p.input("x", .floats([3], []))
        p.input("ids", .ints([2], []))
        p.add("gather", ["x": "x", "indices": "ids", "validate_indices": .bool(true), "axis": .int(0)], "picked", [2])
        p.add("mul", ["x": "x", "y": .float(2)], "y", [3])
        let options = PlanOptions(ranges: ["ids": -1..<3], workers: 1)
        let plan = try Plan(p.function(["picked", "y"]), blobs: NoBlobs(), options: options)
        Tensor.floats([3], [1, 2, 3]).write(to: plan.buffer(named: "x")!)
        Tensor.ints([2], [2, 0]).write(to: plan.buffer(named: "ids")!)
        func values(_ name: String) -> [Double] { Tensor(plan.buffer(named: name)!).values }

        try [Float(7), 7, 5, 6, 7, 8].withUnsafeBytes { memory in
            for start in [8, 9] {  // in place, and where floats cannot be read
                try plan.read(0, from: UnsafeRawBufferPointer(rebasing: memory[start..<start + 12]))
                try plan.run()
                if start == 8 {
                    #expect(values("y") == [10, 12, 14])
                    #expect(values("picked") == [7, 5])
                    #expect(values("x") == [1, 2, 3])
                }
            }
            #expect(throws: RuntimeError.self) { try plan.read(0, from: memory) }
        }
        Tensor.floats([3], [1, 2, 3]).write(to: plan.buffer(named: "x")!)
        try plan.read(0, from: nil)
        try [Int32(1), 1].withUnsafeBytes { memory in
            try plan.read(1, from: memory)
            try plan.run()
            #expect(values("picked") == [2, 2])
            #expect(values("y") == [2, 4, 6])
        }
        try [Int32(3), 1].withUnsafeBytes { memory in
            try plan.read(1, from: memory)
            #expect(throws: RuntimeError.outOfRange(input: "ids", index: 0, value: 3, range: -1..<3)) { try plan.run() }
        }
        try [Int32(-1), -5].withUnsafeBytes { memory in
            try plan.read(1, from: memory)
            #expect(throws: RuntimeError.self) { try plan.run() }
        }
        try plan.read(1, from: nil)
        var written: [Float] = [0, 0, 0, 0]
        try written.withUnsafeMutableBytes { memory in
            for start in [4, 1] {  // in place, and where floats cannot be written
                let part = UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + 12])
                #expect(plan.write(1, to: part) == (start == 4))
                try plan.run()
            }
            #expect(!plan.write(1, to: memory))
            try plan.read(0, from: UnsafeRawBufferPointer(rebasing: memory[4..<16]))
            #expect(!plan.write(1, to: UnsafeMutableRawBufferPointer(rebasing: memory[..<12])))
        }
        #expect(written == [0, 2, 4, 6])
        #expect(plan.write(1, to: nil))
        try plan.read(0, from: nil)
        // What a run writes is copied first.
        try plan.read(0, from: UnsafeRawBufferPointer(plan.buffer(named: "y")!.bytes))
        try plan.run()
        #expect(values("y") == [4, 8, 12])
        #expect(values("picked") == [6, 2])
    }

    @Test func validatedIndicesFailBeforeAnythingChanges() throws {
        for validates in [true, false] {
            var p = ProgramBuilder()
            p.input("table", .floats([3], []))
            p.input("ids", .ints([2], []))
            p.add(
                "gather", ["x": "table", "indices": "ids", "validate_indices": .bool(validates), "axis": .int(0)],
                "y", [2])
            p.add("add", ["x": "table", "y": .float(1)], "next", [3])
            let table = try storage(.floats([3], [1, 2, 3]))
            let options = PlanOptions(residents: ["table": table], donated: ["table": "next"], workers: 1)
            let plan = try Plan(p.function(["y", "next"]), blobs: NoBlobs(), options: options)
            Tensor.ints([2], [-1, 3]).write(to: plan.buffer(named: "ids")!)
            guard validates else {
                try plan.run()
                continue
            }
            let place = RuntimeError.Place.operation(type: "gather", output: "y")
            #expect(throws: RuntimeError.indexOutOfRange(place, index: 1, size: 3)) { try plan.run() }
            #expect(Tensor(table).values == [1, 2, 3])
            Tensor.ints([2], [-1, 0]).write(to: plan.buffer(named: "ids")!)
            try plan.run()
            #expect(Tensor(plan.buffer(named: "y")!).values == [3, 1])
            #expect(Tensor(table).values == [2, 3, 4])
        }
    }
}
