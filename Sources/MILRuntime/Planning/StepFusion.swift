// Joins steps of a chain into steps of several operations: each pass over a tile that falls away is a store the less.
import RLXKernels

extension ChainProgram {
    mutating func fuseSteps() {
        fuseProducts()
        fuseCompounds()
    }

    private func uses() -> [Int] {
        var uses = Array(repeating: 0, count: extents.count)
        for step in steps { for argument in step.arguments { uses[argument] += 1 } }
        for output in outputs { uses[output.value] += 1 }
        for sink in sinks { uses[sink.value] += 1 }
        return uses
    }

    private mutating func remove(_ indices: Set<Int>) {
        steps = steps.enumerated().filter { !indices.contains($0.offset) }.map(\.element)
    }

    /// Products that only a sum or a difference uses become one step with it.
    private mutating func fuseProducts() {
        let uses = uses()
        var products: [Int: Int] = [:]
        var removed: Set<Int> = []
        for (index, step) in steps.enumerated() where step.op == RLXK_MUL && uses[step.out] == 1 {
            products[step.out] = index
        }
        for (index, step) in steps.enumerated() where step.op == RLXK_ADD || step.op == RLXK_SUB {
            // A product for each row is cheaper than one for each lane.
            let sides = [0, 1].filter { side in
                products[step.arguments[side]] != nil && extents[step.arguments[side]] == extents[step.out]
            }
            guard let side = sides.first else { continue }
            let product = products.removeValue(forKey: step.arguments[side])!
            removed.insert(product)
            let other = step.arguments[1 - side]
            let isSum = step.op == RLXK_ADD
            if sides.count == 2, other != step.arguments[side] {
                let second = products.removeValue(forKey: other)!
                removed.insert(second)
                steps[index].op = isSum ? RLXK_MUL_MUL_ADD : RLXK_MUL_MUL_SUB
                steps[index].arguments = scalarFirst(steps[product].arguments) + scalarFirst(steps[second].arguments)
            } else {
                steps[index].op = isSum ? RLXK_MUL_ADD : side == 0 ? RLXK_MUL_SUB : RLXK_MUL_RSUB
                steps[index].arguments = steps[product].arguments + [other]
            }
        }
        remove(removed)
    }

    private func scalarFirst(_ factors: ArraySlice<Int>) -> [Int] { scalarFirst(Array(factors)) }

    private func scalarFirst(_ factors: [Int]) -> [Int] {
        extents[factors[1]] < extents[factors[0]] ? [factors[1], factors[0]] : factors
    }

    // MARK: Forms that optimizers have

    private mutating func fuseCompounds() {
        var makers = Makers(uses: uses())
        var removed: Set<Int> = []
        for (index, step) in steps.enumerated() {
            if let (op, arguments, used) = square(step, makers) ?? shrinking(step, makers)
                ?? rootQuotient(step, makers)
            {
                steps[index].op = op
                steps[index].arguments = arguments
                removed.formUnion(used)
            }
            makers.index[step.out] = index
        }
        remove(removed)
    }

    private struct Makers {
        let uses: [Int]
        var index: [Int: Int] = [:]
    }

    private typealias Compound = (op: rlxk_op, arguments: [Int], used: [Int])

    /// The step that makes `value` by `op` for `user` alone.
    private func maker(
        _ makers: Makers, _ value: Int, _ op: rlxk_op, for user: Step
    ) -> (index: Int, step: Step)? {
        guard makers.uses[value] == 1, let index = makers.index[value], steps[index].op == op,
            extents[value] == extents[user.out]
        else { return nil }
        return (index, steps[index])
    }

    /// x * y + z * square(w)
    private func square(_ step: Step, _ makers: Makers) -> Compound? {
        guard step.op == RLXK_MUL_MUL_ADD else { return nil }
        for side in [2, 0] {
            let (one, other) = (step.arguments[side..<(side + 2)], step.arguments[(2 - side)..<(4 - side)])
            guard let square = maker(makers, one[side + 1], RLXK_SQUARE, for: step) else { continue }
            return (RLXK_MUL_SQUARE_ADD, other + [one[side], square.step.arguments[0]], [square.index])
        }
        return nil
    }

    /// (w - x * w) - y * z with numbers x and y
    private func shrinking(_ step: Step, _ makers: Makers) -> Compound? {
        guard step.op == RLXK_MUL_RSUB, let inner = maker(makers, step.arguments[2], RLXK_MUL_RSUB, for: step) else {
            return nil
        }
        let outer = scalarFirst(step.arguments[..<2])
        let factors = scalarFirst(inner.step.arguments[..<2])
        guard factors[1] == inner.step.arguments[2], isLower(factors[0], step), isLower(outer[0], step),
            !isLower(outer[1], step), !isLower(factors[1], step)
        else { return nil }
        return (RLXK_SHRINK_SUB, [factors[0], outer[0], outer[1], factors[1]], [inner.index])
    }

    /// x / (sqrt(y) * z + w) with numbers z and w
    private func rootQuotient(_ step: Step, _ makers: Makers) -> Compound? {
        guard step.op == RLXK_DIV, !isLower(step.arguments[0], step),
            let sum = maker(makers, step.arguments[1], RLXK_MUL_ADD, for: step), isLower(sum.step.arguments[2], step)
        else { return nil }
        let factors = scalarFirst(sum.step.arguments[..<2])
        guard isLower(factors[0], step), let root = maker(makers, factors[1], RLXK_SQRT, for: step) else { return nil }
        return (
            RLXK_ROOT_DIV, [step.arguments[0], root.step.arguments[0], factors[0], sum.step.arguments[2]],
            [sum.index, root.index]
        )
    }

    /// Whether one element of the value stands for several of the step's.
    private func isLower(_ value: Int, _ step: Step) -> Bool { extents[value] < extents[step.out] }
}
