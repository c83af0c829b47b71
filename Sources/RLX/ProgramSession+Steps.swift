// Many runs in one call: feeds that change from run to run, results that are kept. Knows nothing of training.

import Dispatch

/// One feed's values for many runs: equal blocks of memory, of which each run reads as many as make the feed.
package struct FeedSeries {
    let feed: Int
    let data: UnsafeRawBufferPointer
    let blockBytes: Int
    /// The blocks in the order in which they are read; nil: as they stand.
    let blocks: UnsafeBufferPointer<Int64>?

    package init(
        feed: Int, data: UnsafeRawBufferPointer, blockBytes: Int, blocks: UnsafeBufferPointer<Int64>?
    ) {
        self.feed = feed
        self.data = data
        self.blockBytes = blockBytes
        self.blocks = blocks
    }
}

/// Memory for a result of many runs, that of the first run first.
package struct ResultRecord {
    /// What a result's first element may be that makes its run the last.
    package enum Ending: Int32 { case none, zero, notFinite }

    let result: Int
    let data: UnsafeMutableRawBufferPointer
    let ending: Ending

    package init(result: Int, data: UnsafeMutableRawBufferPointer, ending: Ending) {
        self.result = result
        self.data = data
        self.ending = ending
    }
}

extension ProgramSession {
    /// Runs `count` times, or until an ending or until `nanoseconds` after the first began (0: no limit). `done` counts
    /// the runs that are whole; an error is of the run after them, which changed nothing.
    ///
    /// Throws before the first run, `badShape` for memory that is too small or blocks that make no feed, and
    /// `invalidArgument` for a block that is not there.
    package func run(
        _ count: Int, feeds series: [FeedSeries], records: [ResultRecord], nanoseconds: UInt64, done: inout Int
    ) throws(RLXError) {
        for each in series { try check(each, runs: count) }
        for each in records { try check(each, runs: count) }
        try store.withLock { () throws(RLXError) in
            defer { takeBack() }
            let start = nanoseconds == 0 ? 0 : DispatchTime.now().uptimeNanoseconds
            while done < count {
                for each in series { try bring(each, run: done) }
                try executor.run()
                var isLast = false
                for each in records { isLast = keep(each, run: done) || isLast }
                done += 1
                if isLast { return }
                if nanoseconds != 0, DispatchTime.now().uptimeNanoseconds &- start >= nanoseconds { return }
            }
        }
    }

    private func check(_ series: FeedSeries, runs: Int) throws(RLXError) {
        let feature = feeds[series.feed]
        let size = feedBuffers[series.feed].count
        if size == 0 { return }
        guard series.blockBytes > 0, size % series.blockBytes == 0 else {
            throw RLXError(
                .badShape, "blocks of \(series.blockBytes) bytes make no \(size) bytes of '\(feature.name)'",
                subject: feature.name)
        }
        let there = series.data.count / series.blockBytes
        let (needed, overflow) = runs.multipliedReportingOverflow(by: size / series.blockBytes)
        guard !overflow, needed <= series.blocks?.count ?? there else {
            throw RLXError(.badShape, "'\(feature.name)' has too few blocks for \(runs) runs", subject: feature.name)
        }
        guard let blocks = series.blocks else { return }
        for block in blocks.prefix(needed) where block < 0 || block >= there {
            throw RLXError(
                .invalidArgument, "'\(feature.name)': expected blocks from 0 to \(there - 1), got \(block)",
                subject: feature.name)
        }
    }

    private func check(_ record: ResultRecord, runs: Int) throws(RLXError) {
        let (needed, overflow) = runs.multipliedReportingOverflow(by: resultBuffers[record.result].count)
        guard !overflow, needed <= record.data.count else {
            let feature = results[record.result]
            throw RLXError(
                .badShape, "'\(feature.name)' needs \(needed) bytes for \(runs) runs, got \(record.data.count)",
                subject: feature.name)
        }
    }

    /// Has the next run read its blocks: where they are if they stand together, else a copy.
    private func bring(_ series: FeedSeries, run: Int) throws(RLXError) {
        let home = feedBuffers[series.feed]
        guard let target = home.baseAddress, let source = series.data.baseAddress, !home.isEmpty else { return }
        let bytes = series.blockBytes
        let perRun = home.count / bytes
        let first = run * perRun
        guard let blocks = series.blocks else {
            return try executor.lend(
                series.feed, UnsafeRawBufferPointer(start: source + first * bytes, count: home.count))
        }
        let start = Int(blocks[first])
        if (1..<perRun).allSatisfy({ Int(blocks[first + $0]) == start + $0 }) {
            return try executor.lend(
                series.feed, UnsafeRawBufferPointer(start: source + start * bytes, count: home.count))
        }
        for index in 0..<perRun {
            (target + index * bytes).copyMemory(from: source + Int(blocks[first + index]) * bytes, byteCount: bytes)
        }
        try executor.lend(series.feed, nil)
    }

    /// Copies what a run left in a result; whether it is the last run.
    private func keep(_ record: ResultRecord, run: Int) -> Bool {
        let value = resultBuffers[record.result]
        guard let source = value.baseAddress, let target = record.data.baseAddress, !value.isEmpty else { return false }
        (target + run * value.count).copyMemory(from: source, byteCount: value.count)
        let first = UnsafeRawPointer(source)
        let dtype = results[record.result].dtype
        switch (record.ending, dtype) {
        case (.none, _), (.notFinite, .int32), (.notFinite, .bool): return false
        case (.zero, .float32): return first.load(as: Float.self) == 0
        case (.zero, .int32): return first.load(as: Int32.self) == 0
        case (.zero, .bool): return first.load(as: UInt8.self) == 0
        case (.zero, .float16): return first.load(as: UInt16.self) & 0x7fff == 0
        case (.notFinite, .float32): return !first.load(as: Float.self).isFinite
        case (.notFinite, .float16): return first.load(as: UInt16.self) & 0x7c00 == 0x7c00
        }
    }
}
