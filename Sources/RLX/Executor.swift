// What a session needs of whatever runs its program.

import MILRuntime

/// Runs one bound program over buffers that keep their place. Callers take turns.
protocol Executor: AnyObject {
    /// The buffer of a feed or of a result, in C order.
    func buffer(named name: String) -> Storage?

    /// Has runs read a feed, by its number, from memory of the caller's of the feed's size; nil: from its own buffer.
    func lend(_ feed: Int, _ memory: UnsafeRawBufferPointer?) throws(RLXError)

    /// Has runs write a result, by its number, to memory of the caller's of the result's size; nil: to its own buffer.
    /// False where they cannot, and write the buffer.
    func lend(result: Int, _ memory: UnsafeMutableRawBufferPointer?) -> Bool

    /// Runs once on what the feeds hold. On an error the residents are unchanged.
    func run() throws(RLXError)

    var statistics: ProgramSession.Statistics { get }
}
