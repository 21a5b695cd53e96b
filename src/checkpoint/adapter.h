/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/inventory.h"

/* LoRA and DoRA adapters: files that change the matrices of a text encoder and a transformer by products of
 * low rank (docs/adapters.md). A module's matrix W [out, in] becomes
 *
 *   LoRA    W' = W + Σ w·s·B·A,   A [rank, in], B [out, rank], w the weight that a user gives the adapter,
 *           s = α/rank, or α/√rank (rank-stabilised)
 *   DoRA    V = W + w·s·B·A,   W' = m ⊙ V/‖V‖, norms and m per row, or per column
 *
 * A convolution's matrix is [out, all other extents]. */

enum { SMALTI_ADAPTED_COMPONENTS = 2 }; /* the text encoder and the transformer, as enum smalti_component */

/* What an adapter is for: the tensors of both components; of their matrices it changes some. */
struct smalti_adapter_base {
	const struct smalti_inventory *tensors[SMALTI_ADAPTED_COMPONENTS];
};

/* The change of one matrix. */
struct smalti_low_rank {
	const char *tensor; /* the matrix's name in the base: "transformer_blocks.0.attn1.to_q.weight" */
	int component;
	int64_t out, in, rank;
	float *a, *b;     /* [rank, in], [out, rank] */
	double scale;     /* s */
	float *magnitude; /* DoRA's m: [out], or [in] if it is `by_column`; NULL: LoRA */
	bool by_column;
};

struct smalti_adapter {
	char *path;
	struct smalti_low_rank *changes; /* in bytewise order of their tensors' names */
	int64_t count;
	struct smalti_error note; /* a line for the user about what is odd, if anything; no failure */
};

/* Reads an adapter: a safetensors file, or a directory as peft or diffusers write it. Every tensor must
 * belong to a module of the base, which outlives the adapter. */
struct smalti_adapter *smalti_adapter_open(const char *path, const struct smalti_adapter_base *base,
					   struct smalti_error *error);
/* Reads it from an open file and peft's configuration, which may be NULL; messages name `path`. */
struct smalti_adapter *smalti_adapter_read(const struct smalti_safetensors *file, const cJSON *config,
					   const char *path, const struct smalti_adapter_base *base,
					   struct smalti_error *error);
void smalti_adapter_close(struct smalti_adapter *adapter); /* NULL is allowed */

/* Finds the change of a tensor; NULL: it does not change. */
const struct smalti_low_rank *smalti_adapter_find(const struct smalti_adapter *adapter, const char *tensor);
