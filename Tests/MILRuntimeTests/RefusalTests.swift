// Programs and options that must be refused with the right facts, whatever is wrong with them.
import MILFormat
import Testing

@testable import MILRuntime

struct RefusalTests {
    private func plan(_ p: ProgramBuilder, _ outputs: [String], _ options: PlanOptions = .init(workers: 1)) throws {
        _ = try Plan(p.function(outputs), blobs: NoBlobs(), options: options)
    }

    private func fault(_ p: ProgramBuilder, _ output: String = "y") -> RuntimeError.Fault? {
        do {
            try plan(p, [output])
        } catch RuntimeError.invalid(let fault, _) {
            return fault
        } catch {
            Issue.record("\(error)")
        }
        return nil
    }

    private func one(_ type: String, _ arguments: [String: Binding], _ shape: [Int]) -> ProgramBuilder {
        one(type, arguments, .float32, shape)
    }

    private func one(
        _ type: String, _ arguments: [String: Binding], _ dataType: DataType, _ shape: [Int]
    ) -> ProgramBuilder {
        var p = ProgramBuilder()
        p.input("x", .floats([2, 3], []))
        p.add(type, arguments, "y", dataType, shape)
        return p
    }

    @Test func unknownOperations() throws {
        let place = RuntimeError.Place.operation(type: "frobnicate", output: "y")
        #expect(throws: RuntimeError.unsupported(.operation, place)) {
            try plan(one("frobnicate", ["x": "x"], [2, 3]), ["y"])
        }
        #expect("\(RuntimeError.unsupported(.operation, place))".contains("frobnicate"))
    }

    @Test func namesAndParameters() {
        #expect(fault(one("relu", ["x": "z"], [2, 3])) == .undefinedName("z"))
        #expect(fault(one("relu", [:], [2, 3])) == .missingParameter("x"))
        #expect(fault(one("relu", ["x": "x", "slope": .float(1)], [2, 3])) == .unknownParameter("slope"))
        #expect(fault(one("relu", ["x": "x"], [2, 3]), "absent") == .undefinedName("absent"))
        var twice = one("relu", ["x": "x"], [2, 3])
        twice.add("relu", ["x": "x"], "y", [2, 3])
        #expect(fault(twice) == .redefinedName("y"))
        #expect(fault(one("reshape", ["x": "x", "shape": "x"], [3, 2])) != nil)
        var runtime = ProgramBuilder()
        runtime.input("x", .floats([2], []))
        runtime.input("s", .ints([1], []))
        runtime.add("reshape", ["x": "x", "shape": "s"], "y", [2])
        #expect(fault(runtime) == .notConstant("shape"))
    }

    @Test func typesAndShapes() {
        #expect(fault(one("add", ["x": "x", "y": .int(1)], [2, 3])) != nil)
        #expect(fault(one("add", ["x": "x", "y": .floats([1, 2])], [2, 3])) == .notBroadcastable([2, 3], [2]))
        #expect(fault(one("logical_not", ["x": "x"], .bool, [2, 3])) != nil)
        #expect(fault(one("matmul", ["x": "x", "y": "x"], [2, 3])) != nil)
        #expect(fault(one("reshape", ["x": "x", "shape": .ints([4, 2])], [4, 2])) != nil)
        #expect(fault(one("reshape", ["x": "x", "shape": .ints([-1, -1])], [6, 1])) != nil)
        #expect(fault(one("transpose", ["x": "x", "perm": .ints([0, 0])], [2, 2])) != nil)
        #expect(fault(one("softmax", ["x": "x", "axis": .int(2)], [2, 3])) != nil)
        #expect(fault(one("concat", ["values": "x", "axis": .int(5)], [2, 3])) != nil)
        #expect(fault(one("cast", ["x": "x", "dtype": .int(3)], .int32, [2, 3])) != nil)
        #expect(
            fault(one("relu", ["x": "x"], [3, 2]))
                == .declaredType(output: "y", declared: "tensor<fp32, [3, 2]>", inferred: "tensor<fp32, [2, 3]>"))
        #expect(fault(one("relu", ["x": "x"], .float16, [2, 3])) != nil)
    }

    @Test func sizesThatOverflow() {
        let huge = Double(1 << 30)
        var p = ProgramBuilder()
        p.add("fill", ["shape": .ints([huge, huge, huge])], "y", [1])
        #expect(fault(p) != nil)
        #expect(fault(one("tile", ["x": "x", "reps": .ints([huge, huge])], [1])) != nil)
        #expect(fault(one("pad", ["x": "x", "pad": .ints([huge, huge, huge, huge])], [1])) != nil)
        #expect(throws: RuntimeError.self) { try Storage(type: .float32, shape: [-1]) }
        #expect(throws: RuntimeError.self) { try Storage(type: .float32, shape: [.max, .max]) }
    }

    @Test func constantsThatDoNotFitTheirType() {
        var p = ProgramBuilder()
        p.const("c", Value(type: Tensor.floats([3], []).valueType, payload: .floats([1, 2])))
        p.add("relu", ["x": "c"], "y", [3])
        #expect(fault(p) == .constantPayload)
        var blob = ProgramBuilder()
        blob.const(
            "c", Value(type: Tensor.floats([3], []).valueType, payload: .blob(fileName: "w", offset: 64)))
        blob.add("relu", ["x": "c"], "y", [3])
        #expect(throws: RuntimeError.unreadableConstant(name: "c", reason: "Absent()")) { try plan(blob, ["y"]) }
        var brief = ProgramBuilder()
        brief.const("c", Value(type: .tensor(TensorType(.bfloat16, shape: [1])), payload: .bytes([0, 0])))
        #expect(throws: RuntimeError.self) { try plan(brief, ["c"]) }
    }

    @Test func options() throws {
        let p = one("relu", ["x": "x"], [2, 3])
        let right = try Storage(type: .float32, shape: [2, 3])
        let wrong = try Storage(type: .float32, shape: [3, 2])
        func refusal(_ options: PlanOptions) -> RuntimeError.OptionFault? {
            do {
                try plan(p, ["y"], options)
            } catch RuntimeError.badOption(let fault) {
                return fault
            } catch {
                Issue.record("\(error)")
            }
            return nil
        }
        #expect(refusal(PlanOptions(residents: ["z": right])) == .unknownInput(option: "residents", name: "z"))
        #expect(refusal(PlanOptions(residents: ["x": wrong]))?.subject == "x")
        #expect(refusal(PlanOptions(donated: ["x": "y"]))?.subject == "x")
        #expect(refusal(PlanOptions(residents: ["x": right], donated: ["x": "z"])) == .unknownOutput(name: "z"))
        #expect(refusal(PlanOptions(ranges: ["x": 0..<1])) == .rangeNeedsInt32(name: "x"))
        #expect(refusal(PlanOptions(ranges: ["q": 0..<1])) == .unknownInput(option: "ranges", name: "q"))
    }
}
