/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/layers/tape.h"

/* Layers: each inserts its forward, and on a tape that records knows its backward (graphs/layers/tape.h).
 * What they return is a new value. Bands and shards are the caller's. */

/* Returns x·Wᵀ + b in `result`. */
struct smalti_value smalti_layer_linear(struct smalti_tape *tape, const struct smalti_linear *linear,
					struct smalti_value x, enum smalti_dtype result);
/* Adds x·Wᵀ + b to y, f32. */
void smalti_layer_linear_onto(struct smalti_tape *tape, const struct smalti_linear *linear,
			      struct smalti_value x, struct smalti_value y);
/* Returns f(x·Wᵀ + b) in `result`; f is SMALTI_EPILOGUE_GELU or _SILU. */
struct smalti_value smalti_layer_activated(struct smalti_tape *tape, const struct smalti_linear *linear,
					   struct smalti_value x, enum smalti_epilogue f,
					   enum smalti_dtype result);
/* Returns silu(x), f32. */
struct smalti_value smalti_layer_silu(struct smalti_tape *tape, struct smalti_value x);

/* Returns LN(x)·(1 + scale) + shift in `result`; shift is row `row` of the modulation, and scale the next
 * one. */
struct smalti_value smalti_layer_norm(struct smalti_tape *tape, struct smalti_value x,
				      struct smalti_value modulation, int64_t row, double epsilon,
				      enum smalti_dtype result);
/* Makes y the rows of a table plus rows of the embedding f32 [steps·period, *]: row r gets row
 * step·period + r mod period. If y has a tile, the rows are written there. */
void smalti_layer_modulation(struct smalti_tape *tape, struct smalti_weight *table, int64_t rows,
			     struct smalti_value embedding, int64_t period, int64_t step,
			     struct smalti_value *y);

/* Both make a part of the stream x, f32, x + gate ⊙ Σ (oᵢ·Wᵢᵀ + bᵢ): one call for each i, where Wᵢ is, then
 * the last one where x is. The gate is row `row` of the modulation; without one it is 1. `sum` begins empty.
 * On a tape that records x becomes another value, without a tile if it is the `last`. @{ */
struct smalti_gate {
	struct smalti_value modulation;
	int64_t row;
};
void smalti_layer_add(struct smalti_tape *tape, const struct smalti_linear *linear, struct smalti_value o,
		      struct smalti_gate gate, struct smalti_value *x, struct smalti_value *sum);
void smalti_layer_added(struct smalti_tape *tape, struct smalti_gate gate, bool last, struct smalti_value *x,
			struct smalti_value *sum);
/* @} */

/* Returns the attention of q to the keys. */
struct smalti_value smalti_layer_attend(struct smalti_tape *tape, const struct smalti_heads *heads,
					struct smalti_value q, const struct smalti_key_bands *keys);
