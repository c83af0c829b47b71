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

/// Memory of the caller's for one result, in C order, borrowed for one run.
package struct LentResult {
    /// In `ProgramSession.results`.
    let index: Int
    let bytes: UnsafeMutableRawBufferPointer

    package init(index: Int, bytes: UnsafeMutableRawBufferPointer) {
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
        /// The name of a tensor in the store and of the input that reads it.
        public let input: String
        /// The output with its next value.
        public let output: String

        /// `output` becomes the value of `input`.
        public init(input: String, output: String) {
            self.input = input
            self.output = output
        }
    }

    /// How a program is bound and where it runs.
    public struct Options: Sendable {
        /// What a run updates in place.
        public var pairs: [Pair] = []
        /// What every element of an i32 input must be in; checked before a run changes anything.
        public var ranges: [String: Range<Int32>] = [:]
        /// What runs the program.
        public var device = Device.cpu
        /// Read by Core ML only.
        public var units = ComputeUnits.all
        /// Zero: `RLX_NUM_THREADS`, else one per core. Read by the cpu device only.
        public var threads = 0

        /// On the cpu, with nothing to update.
        public init() {}
    }

    /// Counts since the session was made.
    public struct Statistics: Sendable, Hashable {
        /// How often the program ran.
        public let runs: Int
        /// Kernel launches in one run.
        public let instructions: Int
        /// Planned memory for values that live inside a run.
        public let arenaBytes: Int
        /// Core ML outputs that did not land in the buffer we offered.
        public let backingCopies: Int
    }

    /// The inputs that are not in the store.
    public let feeds: [Feature]
    /// The outputs that are no pair's.
    public let results: [Feature]
    let store: TensorStore
    let executor: any Executor
    /// The buffers of `feeds` and of `results`.
    let feedBuffers: [UnsafeMutableRawBufferPointer]
    let resultBuffers: [UnsafeMutableRawBufferPointer]

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
        let executor: any Executor =
            switch options.device {
            case .cpu: try CPUExecutor(binding, threads: options.threads)
            case .coreML: try CoreMLExecutor(binding, units: options.units)
            }
        self.executor = executor
        feedBuffers = try feeds.map { (feed) throws(RLXError) in try executor.storage(feed.name).bytes }
        resultBuffers = try results.map { (result) throws(RLXError) in try executor.storage(result.name).bytes }
    }

    /// Runs once on what the feeds hold. On an error the store is unchanged.
    public func run() throws(RLXError) {
        try store.withLock { () throws(RLXError) in try executor.run() }
    }

    /// Runs once; the lent feeds (`feed` of the numbers below `count`) are read from the caller's memory and the lent
    /// results written to it, and what their buffers hold after it is not said.
    ///
    /// Throws `badShape` for memory of another size than the feed's or the result's.
    package func run(
        lending count: Int, _ feed: (Int) throws(RLXError) -> LentFeed?, results lent: [LentResult] = []
    ) throws(RLXError) {
        try store.withLock { () throws(RLXError) in
            defer {
                takeBack()
                for result in lent { _ = executor.lend(result: result.index, nil) }
            }
            for position in 0..<count {
                guard let lent = try feed(position) else { continue }
                guard lent.bytes.count == feedBuffers[lent.index].count else {
                    throw .wrongSize(feeds[lent.index], bytes: lent.bytes.count)
                }
                try executor.lend(lent.index, lent.bytes)
            }
            var copied: [LentResult] = []
            for result in lent {
                guard result.bytes.count == resultBuffers[result.index].count else {
                    throw .wrongSize(results[result.index], bytes: result.bytes.count)
                }
                if !executor.lend(result: result.index, result.bytes) { copied.append(result) }
            }
            try executor.run()
            for result in copied { result.bytes.copyMemory(from: UnsafeRawBufferPointer(resultBuffers[result.index])) }
        }
    }

    /// Feeds are read from their own buffers again.
    func takeBack() {
        for feed in feeds.indices { try? executor.lend(feed, nil) }
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
        (try features.feature(name), try executor.storage(name))
    }

    /// What was counted so far.
    public var statistics: Statistics { store.waiting { executor.statistics } }
}

extension Executor {
    fileprivate func storage(_ name: String) throws(RLXError) -> Storage {
        guard let storage = buffer(named: name) else {
            throw RLXError(.internal, "the executor has no buffer for '\(name)'", subject: name)
        }
        return storage
    }
}
