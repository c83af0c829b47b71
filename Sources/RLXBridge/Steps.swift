// rlx_session_run_steps: many runs of a session in one call.

import CRLX
import RLX

@c @implementation
public func rlx_session_run_steps(
    _ session: OpaquePointer!, _ steps: UnsafePointer<rlx_steps>!, _ done: UnsafeMutablePointer<Int64>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let session: SessionHandle = try handle(session, "session")
        let done = try nonNull(done, "done")
        done.pointee = 0
        let steps = try nonNull(steps, "steps").pointee
        try checkSize(steps.size, of: rlx_steps.self, "steps")
        guard let count = Int(exactly: steps.count), count >= 0, let limit = UInt64(exactly: steps.nanoseconds) else {
            throw RLXError(.invalidArgument, "steps.count or steps.nanoseconds is negative", subject: "steps")
        }
        var feeds: [FeedSeries] = []
        for (position, series) in try buffer(steps.feeds, count: steps.feed_count, "steps.feeds").enumerated() {
            feeds.append(try FeedSeries(series, of: session, guess: position))
        }
        var records: [ResultRecord] = []
        for record in try buffer(steps.records, count: steps.record_count, "steps.records") {
            records.append(try ResultRecord(record, of: session))
        }
        var runs = 0
        defer { done.pointee = Int64(runs) }
        try session.session.run(count, feeds: feeds, records: records, nanoseconds: limit, done: &runs)
    }
}

extension FeedSeries {
    fileprivate init(_ series: rlx_series, of session: SessionHandle, guess: Int) throws(RLXError) {
        let feed = try session.feed(nonNull(series.name, "feeds.name"), guess: guess)
        let data = try buffer(
            series.data?.assumingMemoryBound(to: UInt8.self), count: series.bytes, "feeds.data")
        let blocks = try series.blocks.map { (start) throws(RLXError) in
            try buffer(start, count: series.block_count, "feeds.blocks")
        }
        self.init(feed: feed, data: UnsafeRawBufferPointer(data), blockBytes: series.block_bytes, blocks: blocks)
    }
}

extension ResultRecord {
    fileprivate init(_ record: rlx_record, of session: SessionHandle) throws(RLXError) {
        let result = try session.session.results.index(of: string(record.name, "records.name"))
        guard let ending = Ending(rawValue: record.ending) else { throw .unknown("rlx_ending", record.ending) }
        guard record.bytes >= 0 else { throw RLXError(.badShape, "records.bytes is too large", subject: "records") }
        guard record.data != nil || record.bytes == 0 else { throw .null("records.data") }
        self.init(
            result: result, data: UnsafeMutableRawBufferPointer(start: record.data, count: record.bytes),
            ending: ending)
    }
}
