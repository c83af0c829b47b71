/* tile.c - the tiles of every instruction set. */
#include "tile.h"

#include "isa.h"

#define RLXK_BODY "tile_body.h"
#include "isa_each.h"
