// Every operation against values that NumPy computed, folded and at run time, on every instruction set and thread count.
import Foundation
import Testing

@testable import MILRuntime

struct OperationTests {
    static let families = [
        "unary", "binary", "reduction", "product", "layout", "slicing", "indexing", "sorting", "normalization",
        "convolution", "pooling", "resizing", "contraction", "rearrangement", "compression", "recurrent", "sampling",
        "valued", "randomness",
    ]

    @Test(arguments: families) func agreesWithNumPy(_ family: String) throws {
        for test in try OperationCase.load(family) {
            for folded in test.folds ? [false, true] : [false] {
                let label = "\(family)[\(test.index)] \(test.op) folded: \(folded)"
                do {
                    for (got, want) in zip(try test.run(workers: 1, folded: folded), test.outputs) {
                        let difference = got.difference(from: want, tolerance: test.tolerance)
                        #expect(difference == nil, "\(label): \(difference ?? "")")
                    }
                } catch {
                    Issue.record("\(label): \(error)")
                }
            }
        }
    }

    @Test(arguments: families) func doesNotDependOnThreads(_ family: String) throws {
        for test in try OperationCase.load(family) {
            let one = try test.run(workers: 1)
            for workers in [2, 4] {
                let several = try test.run(workers: workers)
                let same = zip(one, several).allSatisfy { a, b in
                    zip(a.values, b.values).allSatisfy { $0.bitPattern == $1.bitPattern }
                }
                #expect(same, "\(family)[\(test.index)] \(test.op) with \(workers) workers")
            }
        }
    }

    @Test(arguments: ["baseline", "avx2", "avx512", "neon"], families)
    func agreesOnEveryInstructionSet(_ isa: String, _ family: String) throws {
        for test in try OperationCase.load(family) {
            guard let results = try test.run(workers: 2, instructionSet: isa) else { return }
            for (got, want) in zip(results, test.outputs) {
                let difference = got.difference(from: want, tolerance: test.tolerance)
                #expect(difference == nil, "\(isa): \(family)[\(test.index)] \(test.op): \(difference ?? "")")
            }
        }
    }

    @Test func everyOperationHasACase() throws {
        let tested = try Set(Self.families.flatMap { try OperationCase.load($0).map(\.op) })
        let untested = Set(OperationTable.rules.keys).subtracting(tested).sorted()
        #expect(untested.isEmpty, "no case for \(untested)")
    }
}
