// What a session needs of whatever runs its program.

import MILRuntime

/// Runs one bound program over buffers that keep their place. Callers take turns.
protocol Executor: AnyObject {
    /// The buffer of a feed or of a result, in C order.
    func buffer(named name: String) -> Storage?

    /// Runs once on what the feeds hold, those lent excepted. On an error the residents are unchanged.
    func run(lending feeds: [LentFeed]) throws(RLXError)

    var statistics: ProgramSession.Statistics { get }
}
