/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The eight tile registers of AMX, of 16 rows of 64 bytes each. Between tiles_begin() and tiles_end() they
 * are the caller's. Tests that have AMX emulated (SMALTI_EMULATED_AMX) have their own. */
#include "kernels/cpu/vector.h"

enum { TILE = 16 };

#if !defined(SMALTI_EMULATED_AMX)

struct tile_config {
	uint8_t palette, start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
};

INLINE void tiles_begin(void)
{
	struct tile_config config = {.palette = 1};
	for (int i = 0; i < 8; i++) {
		config.row_bytes[i] = 64;
		config.rows[i] = TILE;
	}
	__asm__ volatile("ldtilecfg %0" : : "m"(config));
}

INLINE void tiles_end(void)
{
	_tile_release();
}

/* gcc's intrinsics do not say that they read and write memory. */
#define TILES_FENCE() __asm__ volatile("" : : : "memory")

#endif
