/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/adapter_set.h"
#include "checkpoint/gguf.h"

/* The weights of one component directory (docs/reference.md 1.1): STEM.safetensors, or the shards that
 * STEM.safetensors.index.json names; with a variant, STEM.VARIANT.safetensors or the index
 * STEM.safetensors.index.VARIANT.json. Where both forms exist, the index is read for diffusers' components
 * (unless none of its shards exists), the single file for those of transformers, as these libraries do. Old
 * names are offered under their present names: the attention of a VAE, and T5's encoder.embed_tokens.weight
 * where shared.weight is absent. Without any of these, a directory's only file that ends in .gguf is read;
 * T5's tensors in it have transformers' names here. */
struct smalti_checkpoint {
	char *directory; /* the component's, or its GGUF file */
	struct smalti_checkpoint_shard {
		char *path;
		const char *name; /* its file name in the index */
		struct smalti_safetensors *file;
		struct smalti_gguf *gguf; /* one of the two */
	} * shards;
	int shard_count;
	struct smalti_checkpoint_entry {
		struct smalti_tensor_view view;
		const char *path; /* of the shard */
		char *renamed;    /* owns view.name if the file has another */
		/* checkpoint/scales.h: it says how another tensor is coded; its own scale is missing. @{ */
		bool beside, unscaled;
		/* @} */
	} * entries; /* in bytewise order of their (present) names */
	int64_t count;
	/* Tables that products read become rows of int8; products of a transformer's blocks, or of a text
	 * encoder of such tables, are of integers. The caller's to set. @{ */
	bool wants_int8, wants_w8a8;
	/* @} */
	struct smalti_inventory *record; /* NULL: the weights are in files */
	enum smalti_dtype record_dtype;
	const struct smalti_adapter_set *adapters; /* that change tensors; NULL: none */
	const struct smalti_checkpoint *like;      /* of a record: tensors are coded as here, NULL: as none */
};

#define SMALTI_STEM_DIFFUSERS "diffusion_pytorch_model" /* transformer and vae */
#define SMALTI_STEM_T5        "model"                   /* text_encoder */

/* Opens the weights of a directory, or those of a file that ends in .gguf. variant NULL: the plain files,
 * else those of the variant fp16, else bf16. */
struct smalti_checkpoint *smalti_checkpoint_open(const char *directory, const char *stem, const char *variant,
						 struct smalti_error *error);
/* Returns the metadata of a GGUF file; NULL: the weights are in safetensors. */
const cJSON *smalti_checkpoint_metadata(const struct smalti_checkpoint *checkpoint);
/* Opens no files: each tensor that is asked for is there, without data, and is added to the inventory. */
struct smalti_checkpoint *smalti_checkpoint_record(struct smalti_inventory *inventory,
						   enum smalti_dtype dtype, struct smalti_error *error);
void smalti_checkpoint_close(struct smalti_checkpoint *checkpoint);
/* Checks, after tensors were read, that the files have not changed, as smalti_map_check(). */
int smalti_checkpoint_check(const struct smalti_checkpoint *checkpoint, struct smalti_error *error);

bool smalti_checkpoint_has(const struct smalti_checkpoint *checkpoint, const char *name);
/* Returns the entry of that name; NULL: there is none. */
struct smalti_checkpoint_entry *smalti_checkpoint_entry(const struct smalti_checkpoint *checkpoint,
							const char *name);

/* Finds a tensor by name; *view is valid while the checkpoint is open. The error for a tensor that is absent,
 * of another shape, or of a dtype without arithmetic names the file, the tensor, and the expected and the
 * found shape. Its view may be coded: then it has its scale. */
int smalti_checkpoint_find(const struct smalti_checkpoint *checkpoint, const char *name, int rank,
			   const int64_t *shape, struct smalti_tensor_view *view, struct smalti_error *error);
