/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/inventory.h"

/* The weights of one component directory (docs/reference.md 1.1): STEM.safetensors, or the shards that
 * STEM.safetensors.index.json names; with a variant STEM.VARIANT.safetensors, or the index
 * STEM.safetensors.index.VARIANT.json. Where both forms are there, diffusers' components are read by the
 * index (unless none of its shards is there), those of transformers from the single file, as these libraries
 * do. Names that old writers used are offered under their present names: the attention of a VAE, and T5's
 * encoder.embed_tokens.weight where shared.weight is absent. */
struct smalti_checkpoint {
	char *directory; /* the component's */
	struct smalti_checkpoint_shard {
		char *path;
		const char *name; /* in the index */
		struct smalti_safetensors *file;
	} * shards;
	int shard_count;
	struct smalti_checkpoint_entry {
		struct smalti_tensor_view view;
		const char *path; /* of the shard */
		char *renamed;    /* owns view.name when that is not the file's */
	} * entries;              /* in bytewise order of their (present) names */
	int64_t count;
	struct smalti_inventory *record; /* NULL: it has files */
	enum smalti_dtype record_dtype;
};

#define SMALTI_STEM_DIFFUSERS "diffusion_pytorch_model" /* transformer and vae */
#define SMALTI_STEM_T5        "model"                   /* text_encoder */

/* variant NULL: the plain files, else those of the variant fp16 or bf16, whichever is there. */
struct smalti_checkpoint *smalti_checkpoint_open(const char *directory, const char *stem, const char *variant,
						 struct smalti_error *error);
/* No files at all: it has whatever tensor is asked for, without data, and notes it in the inventory. */
struct smalti_checkpoint *smalti_checkpoint_record(struct smalti_inventory *inventory,
						   enum smalti_dtype dtype, struct smalti_error *error);
void smalti_checkpoint_close(struct smalti_checkpoint *checkpoint);
/* Behind reading tensors: fails where one of the files is no longer what it was, as smalti_map_check(). */
int smalti_checkpoint_check(const struct smalti_checkpoint *checkpoint, struct smalti_error *error);

bool smalti_checkpoint_has(const struct smalti_checkpoint *checkpoint, const char *name);

/* The tensor of that name in *view, as long as the checkpoint is open. An error names the file, the
 * tensor, and the expected and the found shape, when it is absent, of another shape, or of a dtype
 * that cannot be computed with. */
int smalti_checkpoint_find(const struct smalti_checkpoint *checkpoint, const char *name, int rank,
			   const int64_t *shape, struct smalti_tensor_view *view, struct smalti_error *error);
