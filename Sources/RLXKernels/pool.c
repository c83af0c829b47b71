#include "rlxk.h"
