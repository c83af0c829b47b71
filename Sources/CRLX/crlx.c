/* SwiftPM wants a source file in a C target; this one earns its place by pinning the layout that
 * Python's cffi and Swift must agree on. */
#include "rlx.h"

_Static_assert(sizeof(rlx_status) == sizeof(int32_t), "enums travel as 32-bit integers");
_Static_assert(sizeof(rlx_tensor) == 5 * sizeof(void *), "rlx_tensor has no hidden padding");
_Static_assert(sizeof(rlx_pair) == 2 * sizeof(void *), "rlx_pair has no hidden padding");
_Static_assert(sizeof(rlx_range) == sizeof(void *) + 8, "rlx_range has no hidden padding");
