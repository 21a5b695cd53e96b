/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/cpu/vector.h"
#include "kernels/cpu/workspace.h"

/* Winograd's F(4×4, 3×3): a tile of 4×4 outputs comes from 6×6 inputs d and the 3×3 taps g as
 * Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A, where ⊙ makes 36 products per pair of channels, a quarter of the direct 144;
 * over all tiles and channels those are 36 products of matrices.
 *
 * The points are 0, ±√½, ±√2, ∞. With 256 channels the largest error against exact sums, relative to the
 * largest value, is 2.4e-6; direct sums in f32 have 1.6e-6, the common points 0, ±1, ±2, ∞ 9.1e-6,
 * 0, ±1, ±½, ∞ 7.7e-6. */
enum { WINOGRAD_TILE = 4, WINOGRAD_SIDE = 6, WINOGRAD_POINTS = 36 };

/* The products' register tile: up to 3 steps of tiles by up to VECS vectors of output channels. */
#if VEC_BYTES == 64
enum { STEP = 4, VECS = 2 };
#else
enum { STEP = 2, VECS = 2 };
#endif
enum { ROWS = 3 * STEP, PANEL = VECS * LANES };

/* Packed weights U [36][panel][in, padded][PANEL]; the last panel may be one vector narrow. */
INLINE int64_t winograd_point_floats(int64_t in, int64_t out)
{
	return smalti_round_up(in, LANES) * smalti_round_up(out, LANES);
}
