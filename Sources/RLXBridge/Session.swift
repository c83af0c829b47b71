// rlx_session: a program planned for one store.

import CRLX
import Foundation
import RLX

final class SessionHandle: Handle {
    let session: ProgramSession
    let shapes: [String: CShape]
    /// Of the session's feeds, in their order.
    private let feedNames: [CString]

    init(_ session: ProgramSession) {
        self.session = session
        shapes = Dictionary(
            (session.feeds + session.results).map { ($0.name, CShape($0.shape)) },
            uniquingKeysWith: { first, _ in first })
        feedNames = session.feeds.map { CString($0.name) }
    }

    /// The number of the feed of that name, which is `guess` for callers that keep the order.
    func feed(_ name: UnsafePointer<CChar>, guess: Int) throws(RLXError) -> Int {
        if feedNames.indices.contains(guess), strcmp(feedNames[guess].pointer, name) == 0 { return guess }
        return try session.feeds.index(of: string(name, "feeds.name"))
    }

    func run(lending feeds: UnsafeBufferPointer<rlx_feed>, results: [LentResult] = []) throws(RLXError) {
        func lent(_ position: Int) throws(RLXError) -> LentFeed? {
            let feed = feeds[position]
            let index = try self.feed(nonNull(feed.name, "feeds.name"), guess: position)
            guard let data = feed.data else { return nil }
            guard feed.bytes >= 0 else { throw RLXError(.badShape, "feeds.bytes is too large", subject: "feeds") }
            return LentFeed(index: index, bytes: UnsafeRawBufferPointer(start: data, count: feed.bytes))
        }
        try session.run(lending: feeds.count, lent, results: results)
    }
}

@c @implementation
public func rlx_session_create(
    _ program: OpaquePointer!, _ store: OpaquePointer!, _ options: UnsafePointer<rlx_session_options>!,
    _ out: UnsafeMutablePointer<OpaquePointer?>!, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let out = try nonNull(out, "out")
        let program: ProgramHandle = try handle(program, "program")
        let store: StoreHandle = try handle(store, "store")
        let options = try ProgramSession.Options(nonNull(options, "options"))
        let session = try ProgramSession(program.program, store: store.store, options: options)
        out.pointee = retained(SessionHandle(session))
    }
}

extension ProgramSession.Options {
    fileprivate init(_ pointer: UnsafePointer<rlx_session_options>) throws(RLXError) {
        self.init()
        let options = pointer.pointee
        try checkSize(options.size, of: rlx_session_options.self, "options")
        for pair in try buffer(options.pairs, count: options.pair_count, "options.pairs") {
            pairs.append(.init(input: try string(pair.input, "input"), output: try string(pair.output, "output")))
        }
        for range in try buffer(options.ranges, count: options.range_count, "options.ranges") {
            let name = try string(range.input, "input")
            guard range.low <= range.high else {
                throw RLXError(
                    .invalidArgument, "the range [\(range.low), \(range.high)) of '\(name)' is upside down",
                    subject: name)
            }
            ranges[name] = range.low..<range.high
        }
        guard let device = Device(rawValue: options.device) else { throw .unknown("rlx_device", options.device) }
        guard let units = ComputeUnits(rawValue: options.units) else { throw .unknown("rlx_units", options.units) }
        self.device = device
        self.units = units
        threads = Int(options.threads)
    }
}

@c @implementation
public func rlx_session_buffer(
    _ session: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ out: UnsafeMutablePointer<rlx_tensor>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let session: SessionHandle = try handle(session, "session")
        let out = try nonNull(out, "out")
        try checkSize(out.pointee.size, of: rlx_tensor.self, "out")
        let (feature, bytes) = try session.session.buffer(try string(name, "name"))
        out.pointee.data = bytes.baseAddress
        out.pointee.dtype = feature.dtype.rawValue
        out.pointee.rank = Int32(clamping: feature.shape.count)
        out.pointee.shape = session.shapes[feature.name]?.pointer
        out.pointee.strides = nil
    }
}

@c @implementation
public func rlx_session_run(
    _ session: OpaquePointer!, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let session: SessionHandle = try handle(session, "session")
        try session.session.run()
    }
}

@c @implementation
public func rlx_session_run_feeds(
    _ session: OpaquePointer!, _ feeds: UnsafePointer<rlx_feed>!, _ count: Int,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let session: SessionHandle = try handle(session, "session")
        try session.run(lending: buffer(feeds, count: count, "feeds"))
    }
}

@c @implementation
public func rlx_session_run_lent(
    _ session: OpaquePointer!, _ feeds: UnsafePointer<rlx_feed>!, _ count: Int, _ targets: UnsafePointer<rlx_target>!,
    _ targetCount: Int, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let session: SessionHandle = try handle(session, "session")
        var results: [LentResult] = []
        for target in try buffer(targets, count: targetCount, "targets") {
            let index = try session.session.results.index(of: string(target.name, "targets.name"))
            let data = try nonNull(target.data, "targets.data")
            guard target.bytes >= 0 else { throw RLXError(.badShape, "targets.bytes is too large", subject: "targets") }
            results.append(
                LentResult(index: index, bytes: UnsafeMutableRawBufferPointer(start: data, count: target.bytes)))
        }
        try session.run(lending: buffer(feeds, count: count, "feeds"), results: results)
    }
}

@c @implementation
public func rlx_session_get_statistics(
    _ session: OpaquePointer!, _ out: UnsafeMutablePointer<rlx_session_statistics>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> rlx_status {
    attempt(error) { () throws(RLXError) in
        let session: SessionHandle = try handle(session, "session")
        let out = try nonNull(out, "out")
        try checkSize(out.pointee.size, of: rlx_session_statistics.self, "out")
        let statistics = session.session.statistics
        out.pointee.runs = Int64(statistics.runs)
        out.pointee.instructions = Int64(statistics.instructions)
        out.pointee.arena_bytes = Int64(statistics.arenaBytes)
        out.pointee.backing_copies = Int64(statistics.backingCopies)
    }
}

@c @implementation
public func rlx_session_destroy(_ session: OpaquePointer!) { released(session) }
