// Runs a program on our own runtime; residents are updated in place.

import MILRuntime
import RLXKernels

final class CPUExecutor: Executor {
    private let plan: Plan
    private let residents: [Resident]
    private var runs = 0

    init(_ binding: ProgramBinding, threads: Int) throws(RLXError) {
        var options = PlanOptions()
        options.residents = binding.residents.mapValues(\.home)
        options.donated = binding.donated
        options.ranges = binding.ranges
        if threads > 0 { options.workers = threads }
        do {
            plan = try Plan(binding.program.function, blobs: binding.program.package, options: options)
        } catch {
            throw RLXError(error)
        }
        residents = Array(binding.residents.values)
        rlxk_return_freed()  // what planning took, before the first run takes its own
    }

    func buffer(named name: String) -> Storage? { plan.buffer(named: name) }

    func lend(_ feed: Int, _ memory: UnsafeRawBufferPointer?) throws(RLXError) {
        do { try plan.read(feed, from: memory) } catch { throw RLXError(error) }
    }

    func lend(result: Int, _ memory: UnsafeMutableRawBufferPointer?) -> Bool { plan.write(result, to: memory) }

    func run() throws(RLXError) {
        for resident in residents { resident.bringHome() }
        do { try plan.run() } catch { throw RLXError(error) }
        runs += 1
    }

    var statistics: ProgramSession.Statistics {
        let plan = plan.statistics
        return .init(runs: runs, instructions: plan.instructions, arenaBytes: plan.arenaBytes, backingCopies: 0)
    }
}
