// Where the time of a run goes: what is counted while it runs, and what that says afterwards.

/// One run, step by step.
public struct Profile: Sendable {
    /// One call of a kernel, or a few that belong together, with all the operations that they do.
    public struct Step: Sendable {
        /// By type and (first) output.
        public let operations: [(type: String, output: String)]
        /// How often the step ran, in all `duration` together.
        public fileprivate(set) var calls: Int
        public fileprivate(set) var duration: Duration
        /// Multiplications, additions and other arithmetic on elements in all calls together; what sorts, resamples or
        /// only moves counts none.
        public fileprivate(set) var flops: Double
        /// Memory that must be read and written in all calls together.
        public fileprivate(set) var bytes: Int
    }

    /// Of the whole run: what the steps do not account for is planning, copies between stretches, and control flow.
    public let duration: Duration
    /// In the order of their first call.
    public let steps: [Step]
}

final class Profiler {
    private struct Key: Hashable {
        var plan: ObjectIdentifier
        var step: Int
    }

    private var places: [Key: Int] = [:]
    private var steps: [Profile.Step] = []
    /// Plans must not share an address.
    private var plans: [Plan] = []

    func run(_ plan: Plan) throws(RuntimeError) {
        if !plans.contains(where: { $0 === plan }) { plans.append(plan) }
        for (number, (cost, time)) in try plan.timedRun().enumerated() {
            let key = Key(plan: ObjectIdentifier(plan), step: number)
            let index = places[key] ?? steps.count
            if index == steps.count {
                places[key] = index
                steps.append(
                    Profile.Step(
                        operations: cost.places.compactMap(\.named), calls: 0, duration: .zero, flops: 0, bytes: 0))
            }
            steps[index].calls += 1
            steps[index].duration += time
            steps[index].flops += cost.flops
            steps[index].bytes += cost.bytes
        }
    }

    func profile(duration: Duration) -> Profile { Profile(duration: duration, steps: steps) }
}

extension RuntimeError.Place {
    fileprivate var named: (type: String, output: String)? {
        if case .operation(let type, let output) = self { (type, output) } else { nil }
    }
}
