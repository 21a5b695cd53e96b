/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "rt/tile.h"

/* A matrix [rows, columns] in a graph. */
struct smalti_value {
	struct smalti_tile *tile;
	int64_t rows, columns;
	enum smalti_dtype dtype;
	int64_t
	    number; /* on a tape (graphs/layers/tape.h), from 1 on; 0: it is on none, and has no gradient */
};
