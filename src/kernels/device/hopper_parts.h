/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on GPUs of compute capability 9.0 (attention_hopper.cl): what the kernels and those who launch
 * them agree on. */
#pragma once

enum {
	SMALTI_HOPPER_KEYS = 128, /* that a group takes at a time */
	SMALTI_HOPPER_PANEL = 64, /* columns of a matrix in local memory: 128 bytes of each row */
	SMALTI_HOPPER_STAGES = 3  /* tiles of keys, and of values, that a group has at a time */
};

/* Queries and threads of a group of which so many teams multiply: each has 64 queries, and one more loads. @{
 */
#define SMALTI_HOPPER_QUERIES(teams) (64 * (teams))
#define SMALTI_HOPPER_THREADS(teams) (128 * ((teams) + 1))
/* @} */

/* Columns of the panel behind the whole ones, which has those of queries and keys that are left: 0, 16 or 32.
 */
#define SMALTI_HOPPER_NARROW(head_dim) (((head_dim) % SMALTI_HOPPER_PANEL + 15) / 16 * 16)
/* Bytes of a row of queries or keys; of a tile of keys, and of one of values, whose panels are all whole. @{
 */
#define SMALTI_HOPPER_ROW_BYTES(head_dim)                                                                    \
	(2 * ((head_dim) / SMALTI_HOPPER_PANEL * SMALTI_HOPPER_PANEL + SMALTI_HOPPER_NARROW(head_dim)))
#define SMALTI_HOPPER_KEY_BYTES(head_dim) (SMALTI_HOPPER_KEYS * SMALTI_HOPPER_ROW_BYTES(head_dim))
#define SMALTI_HOPPER_VALUE_BYTES(head_dim)                                                                  \
	(2 * SMALTI_HOPPER_KEYS *                                                                            \
	 (((head_dim) + SMALTI_HOPPER_PANEL - 1) / SMALTI_HOPPER_PANEL * SMALTI_HOPPER_PANEL))
/* @} */
/* Bytes of local memory: tiles at multiples of 1024, and behind them barriers. */
#define SMALTI_HOPPER_BYTES(head_dim, teams)                                                                 \
	(1024 + SMALTI_HOPPER_QUERIES(teams) * SMALTI_HOPPER_ROW_BYTES(head_dim) +                           \
	 SMALTI_HOPPER_STAGES *                                                                              \
	     (SMALTI_HOPPER_KEY_BYTES(head_dim) + SMALTI_HOPPER_VALUE_BYTES(head_dim) + 32) +                \
	 16)

/* Attention of `queries` tokens to `keys` tokens of one tile, one of them at least, as struct
 * attend_arguments has it; the scale is that of scores in units of ln 2. */
struct attend_hopper_arguments {
	int queries, keys, heads;
	float scale;
	int first, last; /* whether */
};
