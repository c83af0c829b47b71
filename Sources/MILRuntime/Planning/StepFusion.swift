// Joins steps of a chain into steps of several operations: each pass over a tile that falls away is a store the less.
import RLXKernels

extension ChainProgram {
    mutating func fuseSteps() {
        fuseProducts()
        fuseCompounds()
        fuseMoments()
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

    private mutating func fuseMoments() {
        var makers = Makers(uses: uses())
        var removed: Set<Int> = []
        for index in steps.indices {
            if let (moments, used) = moments(index, makers) {
                steps[index] = moments
                removed.formUnion(used)
            }
            for result in steps[index].results { makers.index[result] = index }
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

    /// The step that moves a weight by the quotient of two moments of one gradient, as one with those that make them.
    private func moments(_ index: Int, _ makers: Makers) -> (step: Step, used: [Int])? {
        let step = steps[index]
        guard let move = move(step), let quotient = maker(makers, move.quotient, RLXK_ROOT_DIV, for: step) else {
            return nil
        }
        let (mean, square) = (quotient.step.arguments[0], quotient.step.arguments[1])
        guard let meanIndex = makers.index[mean], steps[meanIndex].op == RLXK_MUL_MUL_ADD,
            let squareIndex = makers.index[square], steps[squareIndex].op == RLXK_MUL_SQUARE_ADD,
            extents[mean] == extents[step.out], extents[square] == extents[step.out]
        else { return nil }
        let second = steps[squareIndex].arguments
        var first = steps[meanIndex].arguments
        if first[1] == second[3] { first = Array(first[2...] + first[..<2]) }
        let lanes = [first[1], first[3], second[1], move.weight]
        let numbers = [first[0], first[2], second[0], second[2]] + quotient.step.arguments[2...] + move.numbers
        // The moments will be there later than they were.
        let isReadBetween = steps[min(meanIndex, squareIndex)..<index].enumerated().contains { offset, other in
            min(meanIndex, squareIndex) + offset != quotient.index
                && (other.arguments.contains(mean) || other.arguments.contains(square))
        }
        guard first[3] == second[3], !isReadBetween, !lanes.contains(where: { isLower($0, step) }),
            extents[step.out] != .one, numbers.allSatisfy({ extents[$0] == .one })
        else { return nil }
        let fused = Step(
            op: move.numbers.count == 1 ? RLXK_MOMENTS : RLXK_MOMENTS_SHRINK, out: step.out, further: [mean, square],
            arguments: first + second[..<3] + quotient.step.arguments[2...] + [move.numbers[0], move.weight]
                + move.numbers[1...])
        return (fused, [meanIndex, squareIndex, quotient.index])
    }

    /// w - r * x, or the same of a w that shrinks by h first: the numbers r and h, the quotient x and the weight w.
    private func move(_ step: Step) -> (numbers: [Int], quotient: Int, weight: Int)? {
        let arguments = step.arguments
        switch step.op {
        case RLXK_MUL_RSUB:
            let factors = scalarFirst(arguments[..<2])
            return ([factors[0]], factors[1], arguments[2])
        case RLXK_SHRINK_SUB: return ([arguments[1], arguments[0]], arguments[2], arguments[3])
        default: return nil
        }
    }

    /// Whether one element of the value stands for several of the step's.
    private func isLower(_ value: Int, _ step: Step) -> Bool { extents[value] < extents[step.out] }
}
