// The only @try of the library.
#import "RLXExceptions.h"

NSErrorDomain const RLXExceptionDomain = @"RLXException";

@implementation RLXExceptions

+ (BOOL)catchIn:(void(NS_NOESCAPE ^)(void))block error:(NSError **)error {
    @try {
        block();
        return YES;
    } @catch (NSException *exception) {
        if (error) {
            NSString *reason = exception.reason ?: exception.name;
            *error = [NSError errorWithDomain:RLXExceptionDomain
                                         code:1
                                     userInfo:@{
                                         NSLocalizedDescriptionKey : reason,
                                         NSLocalizedFailureReasonErrorKey : exception.name
                                     }];
        }
        return NO;
    }
}

@end
