// The pool and the walk over a list: shares, barriers, serial instructions, concurrent callers, forks.
import Foundation
import RLXKernels
import Testing

/// What the kernels below work on. Each worker adds its share of `cells`.
private struct Job {
    var cells: UnsafeMutablePointer<Int64>
    var count: Int64
}

/// cells[i] += 1
private let increment: rlxk_kernel = { argument, worker, workers in
    let job = argument!.load(as: Job.self)
    var begin: Int64 = 0
    var end: Int64 = 0
    rlxk_share(job.count, worker, workers, &begin, &end)
    for i in begin..<end { job.cells[Int(i)] += 1 }
}

/// cells[i] += cells[count - 1 - i], for the first half: reads what another worker wrote before the barrier.
private let fold: rlxk_kernel = { argument, worker, workers in
    let job = argument!.load(as: Job.self)
    var begin: Int64 = 0
    var end: Int64 = 0
    rlxk_share(job.count / 2, worker, workers, &begin, &end)
    for i in begin..<end { job.cells[Int(i)] += job.cells[Int(job.count - 1 - i)] }
}

/// cells[0] = sum of all
private let total: rlxk_kernel = { argument, worker, workers in
    let job = argument!.load(as: Job.self)
    job.cells[0] = worker == 0 && workers == 1 ? (0..<Int(job.count)).reduce(0) { $0 + job.cells[$1] } : -1
}

private func run(_ steps: [(rlxk_kernel, Int)], on cells: inout [Int64], workers: Int32) {
    cells.withUnsafeMutableBufferPointer { buffer in
        var job = Job(cells: buffer.baseAddress!, count: Int64(buffer.count))
        withUnsafePointer(to: &job) { job in
            let list = steps.map { rlxk_instruction(run: $0.0, arguments: job, flags: UInt32($0.1)) }
            rlxk_execute(list, list.count, workers)
        }
    }
}

private let barrier = RLXK_BARRIER
private let serial = RLXK_SERIAL

@Suite struct PoolTests {
    @Test func aShareCoversAllTilesOnce() {
        for tiles in 0...20 as ClosedRange<Int64> {
            for workers in 1...7 as ClosedRange<Int32> {
                var next: Int64 = 0
                for worker in 0..<workers {
                    var begin: Int64 = 0
                    var end: Int64 = 0
                    rlxk_share(tiles, worker, workers, &begin, &end)
                    #expect(begin == next)
                    next = end
                }
                #expect(next == tiles)
            }
        }
    }

    @Test(arguments: [0, 1, 2, 3, 8, 300] as [Int32])
    func barriersSeparateInstructions(workers: Int32) {
        for _ in 0..<50 {
            var cells = [Int64](repeating: 1, count: 1000)
            run([(increment, barrier), (fold, barrier), (increment, barrier), (fold, 0)], on: &cells, workers: workers)
            #expect(cells[..<500].allSatisfy { $0 == 8 } && cells[500...].allSatisfy { $0 == 3 })
        }
    }

    @Test(arguments: [1, 2, 3] as [Int32])
    func serialInstructionsRunOnceAndInOrder(workers: Int32) {
        for _ in 0..<50 {
            var cells = [Int64](repeating: 0, count: 100)
            run(
                [
                    (total, serial | barrier), (increment, barrier), (total, serial | barrier),
                    (total, serial | barrier), (total, serial | barrier), (increment, barrier), (fold, barrier),
                    (total, serial),
                ], on: &cells, workers: workers)
            // Cell 0 is 100, 199, 298 after the totals, 299 and 301 before the last one.
            #expect(cells[0] == 301 + 49 * 4 + 50 * 2)
        }
    }

    @Test func aBarrierAfterASerialInstructionWaitsForSharesBeforeIt() {
        let nothing: rlxk_kernel = { _, _, _ in }
        for _ in 0..<50 {
            var cells = [Int64](repeating: 0, count: 20_000)
            run([(increment, 0), (nothing, serial | barrier), (total, serial)], on: &cells, workers: 2)
            #expect(cells[0] == 20_000)
        }
    }

    @Test func anEmptyListDoesNothing() {
        rlxk_execute(nil, 0, 4)
    }

    @Test func concurrentCallersTakeTurns() {
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<100 {
                var cells = [Int64](repeating: 0, count: 64)
                run([(increment, barrier), (fold, barrier), (total, serial)], on: &cells, workers: 3)
                #expect(cells[0] == 96)
            }
        }
    }

    @Test func aForkedChildMakesItsOwnPool() throws {
        let everywhere = UnsafeMutableRawPointer(bitPattern: 0)
        // The thread sanitizer refuses threads in a forked child.
        if dlsym(everywhere, "__tsan_init") != nil { return }
        let fork = unsafeBitCast(try #require(dlsym(everywhere, "fork")), to: (@convention(c) () -> pid_t).self)

        var cells = [Int64](repeating: 0, count: 64)
        run([(increment, barrier), (fold, 0)], on: &cells, workers: 2)
        let child = fork()
        if child == 0 {
            run([(increment, barrier), (fold, 0)], on: &cells, workers: 3)
            _exit(cells[0] == 5 ? 7 : 1)
        }
        var status: Int32 = 0
        #expect(waitpid(child, &status, 0) == child)
        #expect(status >> 8 == 7)
        run([(increment, barrier), (fold, 0)], on: &cells, workers: 2)
        #expect(cells[0] == 5)
    }

    @Test func subnormalsAreFlushedInsideAWalkOnly() {
        let halve: rlxk_kernel = { argument, _, _ in
            let x = UnsafeMutableRawPointer(mutating: argument!).assumingMemoryBound(to: Float.self)
            x.pointee *= 0.5
        }
        var x = Float.leastNormalMagnitude
        withUnsafePointer(to: &x) { pointer in
            var only = rlxk_instruction(run: halve, arguments: pointer, flags: 0)
            rlxk_execute(&only, 1, 1)
        }
        #expect(x == 0)
        x = Float.leastNormalMagnitude
        x *= 0.5
        #expect(x.isSubnormal)
    }

    @Test func workersAreAtLeastOne() {
        #expect(rlxk_default_workers() >= 1)
    }
}
