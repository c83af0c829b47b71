/* recurrent.c - the steps of recurrent layers; see include/rlxk_recurrent.h for what they mean. */
#include "include/rlxk_recurrent.h"

#include <string.h>

#include "isa.h"
#include "vmath.h"

#define RLXK_BODY "recurrent_body.h"
#include "isa_each.h"
RLXK_DISPATCH(rlxk_recurrent_run, recurrent)
