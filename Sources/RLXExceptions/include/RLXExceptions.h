// Objective-C exceptions as errors, for Swift, which cannot catch them. Apple systems only; knows nothing of Core ML.
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// The domain of the errors: `userInfo` has the exception's name under `NSLocalizedFailureReasonErrorKey`.
FOUNDATION_EXPORT NSErrorDomain const RLXExceptionDomain;

@interface RLXExceptions : NSObject

/// Runs the block. An exception that it raises becomes `error`; what the frames between held is not released.
+ (BOOL)catchIn:(void(NS_NOESCAPE ^)(void))block error:(NSError **)error NS_SWIFT_NAME(catching(_:));

@end

NS_ASSUME_NONNULL_END
