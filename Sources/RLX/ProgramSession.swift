// A program bound to a store on one device: the object behind every step.

import MILRuntime

/// Memory of the caller's for one feed, in C order, borrowed for one run.
package struct LentFeed {
    /// In `ProgramSession.feeds`.
    let index: Int
    let bytes: UnsafeRawBufferPointer

    package init(index: Int, bytes: UnsafeRawBufferPointer) {
        self.index = index
        self.bytes = bytes
    }
}

/// Runs one program over and over: weights and state stay in the store, feeds and results in fixed buffers.
///
/// Any thread may call; runs over one store take turns.
public final class ProgramSession: @unchecked Sendable {
    /// After each run the value of `output` becomes the value of the store's tensor `input`.
    public struct Pair: Sendable, Hashable {
        public let input: String
        public let output: String

        public init(input: String, output: String) {
            self.input = input
            self.output = output
        }
    }

    public struct Options: Sendable {
        public var pairs: [Pair] = []
        /// What every element of an i32 input must be in; checked before a run changes anything.
        public var ranges: [String: Range<Int32>] = [:]
        public var device = Device.cpu
        /// Read by Core ML only.
        public var units = ComputeUnits.all
        /// Zero: `RLX_NUM_THREADS`, else one per core. Read by the cpu device only.
        public var threads = 0

        public init() {}
    }

    /// Counts since the session was made.
    public struct Statistics: Sendable, Hashable {
        public let runs: Int
        /// Kernel launches in one run.
        public let instructions: Int
        /// Planned memory for values that live inside a run.
        public let arenaBytes: Int
        /// Core ML outputs that did not land in the buffer we offered.
        public let backingCopies: Int
    }

    public let feeds: [Feature]
    public let results: [Feature]
    private let store: TensorStore
    private let executor: any Executor

    /// Inputs whose names are in the store now are read from there; the others are feeds.
    ///
    /// Throws `notFound` for names that the program or the store does not have, `badShape` and `badDType` where
    /// a tensor does not fit its input or a pair does not match, `unsupported` for operations that we do not
    /// have, and `unavailable` for a device that is not here.
    public init(_ program: LoadedProgram, store: TensorStore, options: Options = Options()) throws(RLXError) {
        try options.device.check()
        let binding = try ProgramBinding(program, store: store, options: options)
        feeds = binding.feeds
        results = binding.results
        self.store = store
        executor =
            switch options.device {
            case .cpu: try CPUExecutor(binding, threads: options.threads)
            case .coreML: try CoreMLExecutor(binding, units: options.units)
            }
    }

    /// Runs once on what the feeds hold. On an error the store is unchanged.
    public func run() throws(RLXError) { try run(lending: []) }

    /// Runs once; the lent feeds are read from the caller's memory, and what their buffers hold after it is not said.
    ///
    /// Throws `badShape` for memory of another size than the feed's.
    package func run(lending lent: [LentFeed]) throws(RLXError) {
        for feed in lent {
            let feature = feeds[feed.index]
            guard let count = elementCount(feature.shape), feed.bytes.count == count * feature.dtype.size else {
                throw RLXError(
                    .badShape,
                    "'\(feature.name)' takes \(feature.dtype) of shape \(feature.shape.text), got \(feed.bytes.count) bytes",
                    subject: feature.name)
            }
        }
        try store.withLock { () throws(RLXError) in try executor.run(lending: lent) }
    }

    /// Copies a value into the buffer of a feed.
    public func feed(_ name: String, _ value: Tensor) throws(RLXError) {
        let (feature, storage) = try buffer(among: feeds, name)
        try feature.check(dtype: value.dtype, shape: value.shape)
        try value.withView { (view) throws(RLXError) in storage.write(view) }
    }

    /// A copy of what the last run left in a result.
    public func result(_ name: String) throws(RLXError) -> Tensor {
        let (feature, storage) = try buffer(among: results, name)
        return Tensor(copying: storage.bytes, dtype: feature.dtype, shape: feature.shape)
    }

    /// The buffer of a feed or of a result: C order, the same address for the life of the session.
    package func buffer(_ name: String) throws(RLXError) -> (Feature, UnsafeMutableRawBufferPointer) {
        let (feature, storage) = try buffer(among: feeds + results, name)
        return (feature, storage.bytes)
    }

    private func buffer(among features: [Feature], _ name: String) throws(RLXError) -> (Feature, Storage) {
        let feature = try features.feature(name)
        guard let storage = executor.buffer(named: name) else {
            throw RLXError(.internal, "the executor has no buffer for '\(name)'", subject: name)
        }
        return (feature, storage)
    }

    public var statistics: Statistics { store.withLock { executor.statistics } }
}
