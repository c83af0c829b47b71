// What every call of Core ML stands in: Objective-C's memory and exceptions, which Linux does not have.

#if canImport(ObjectiveC)
import ObjectiveC
import RLXExceptions

/// What Core ML autoreleases inside of the body is gone after it; without this a thread with no run loop piles
/// up buffers until the process aborts. An Objective-C exception in the body is thrown as an error.
func callingCoreML<R>(_ body: () throws -> R) throws -> R {
    var result: Result<R, any Error>?
    try autoreleasepool { try RLXExceptions.catching { result = Result { try body() } } }
    guard let result else { throw RLXError(.internal, "a call of Core ML did not come to its end") }
    return try result.get()
}
#else
func callingCoreML<R>(_ body: () throws -> R) throws -> R { try body() }
#endif
