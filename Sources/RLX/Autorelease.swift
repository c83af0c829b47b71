// The one thing that the Core ML executor needs of Objective-C's memory management.

#if canImport(ObjectiveC)
import ObjectiveC

/// What Core ML autoreleases inside of the body is gone after it; without this a thread with no run loop piles
/// up buffers until the process aborts.
func withAutoreleasePool<R, E>(_ body: () throws(E) -> R) throws(E) -> R {
    let result: Result<R, E> = autoreleasepool { Result { () throws(E) in try body() } }
    return try result.get()
}
#else
func withAutoreleasePool<R, E>(_ body: () throws(E) -> R) throws(E) -> R { try body() }
#endif
