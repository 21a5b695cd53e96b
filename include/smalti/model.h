/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/session.h>

/** @file
 * A model is a PixArt-α/Σ pipeline in diffusers' directory layout: tokenizer, text_encoder, transformer, vae,
 * scheduler. Weights stay in the mapped files; tasks make their packed form when they are first used.
 *
 * Threads: one thread opens and closes it; while it is open, any thread may use it.
 */

SMALTI_BEGIN_DECLS

struct smalti_model;

/** The data type of the operands of matrix products and convolutions; sums and the residual stream are always
 * f32. */
enum smalti_precision {
	SMALTI_PRECISION_F32,
	SMALTI_PRECISION_BF16, /**< operands rounded to bf16 */
	/** Operands rounded to f16, which has none beyond 65504: but f32 for those that are known to be
	 * larger, of the text encoder's last product in a layer, and of a VAE unless its "force_upcast" is
	 * false. */
	SMALTI_PRECISION_F16,
	SMALTI_PRECISION_TF32, /**< f32, which CUDA devices multiply by their TF32 units; for these alone */
	/** f32, but the linear layers of the transformer's blocks multiply integers of 8 bits: their weights'
	 * rows and their input's are rounded, each with a scale. For images alone. */
	SMALTI_PRECISION_W8A8,
	SMALTI_PRECISION_W8A8_BF16 /**< that, but bf16 where it has f32: faster where the hardware has bf16 */
};

/** A LoRA or DoRA adapter and the weight that its change has; 1 is as it was trained. */
struct smalti_lora {
	/** A safetensors file, or a directory as peft or diffusers write it. */
	const char *path;
	double weight;
};

/** How the text encoder's matrices, which take most of a model's memory, are held. */
enum smalti_text_encoder_precision {
	SMALTI_TEXT_ENCODER_STORED, /**< as the file has them; integers of 8 bits stay such */
	/** As integers of 8 bits with a scale for each row: a quarter of the memory of f32, an error of about
	 * 1 % in the text. Products are still of `precision`. */
	SMALTI_TEXT_ENCODER_INT8,
	/** Like that, and the input of the products of a layer is rounded, too, so that they are of integers;
	 * but not of those behind attention and the feed-forward (`o`, `wo`), whose inputs have outliers. */
	SMALTI_TEXT_ENCODER_W8A8
};

struct smalti_model_options {
	const char *directory; /**< of the pipeline; NULL: the embedded model */
	/** Directories of single components; NULL: below `directory`. The text encoder and the transformer
	 * may be GGUF files. @{ */
	const char *tokenizer, *text_encoder, *transformer, *vae, *scheduler;
	/** @} */
	const char *variant; /**< of the weight files ("fp16"); NULL: the plain ones */
	enum smalti_precision precision;
	enum smalti_text_encoder_precision text_encoder_precision;
	/** Adapters, merged into the weights when these are packed (docs/adapters.md); every tensor of one
	 * must belong to the model. */
	const struct smalti_lora *loras;
	int64_t lora_count;
	const char *step_cache_table; /**< of bounds; NULL: step_cache.json in `directory` */
};

/** All fields at their defaults. */
void smalti_model_defaults(struct smalti_model_options *options);

/** The directory of the embedded model: $SMALTI_MODEL_DIR, else beside the build tree or where it was
 * installed. NULL with SMALTI_EIO when it is in none of them. Static storage. */
const char *smalti_embedded_model(struct smalti_error *error);

/** Opens and checks all components. The session outlives the model. `options` NULL: the defaults. NULL with
 * SMALTI_EIO, SMALTI_EFORMAT or SMALTI_EUNSUPPORTED and a message that names the file and the key or tensor.
 */
struct smalti_model *smalti_model_open(struct smalti_session *session,
				       const struct smalti_model_options *options,
				       struct smalti_error *error);

/** After the last batch on it was closed. NULL is allowed. */
void smalti_model_close(struct smalti_model *model);

/** Facts that a front end shows; the strings live as long as the model. */
struct smalti_model_info {
	int64_t native_width, native_height; /**< pixels */
	int64_t size_multiple;               /**< sizes are computed at multiples of this and cropped */
	int64_t max_tokens;                  /**< most tokens of a prompt, with its end-of-sentence token */
	int64_t latent_channels;             /**< of the latents */
	int64_t latent_pixels;               /**< along each side of the image, to one latent */
	int64_t weight_bytes;                /**< memory that the weights need */
	const char *scheduler; /**< name of the model's own scheduler; NULL: one without a name */
	/** 32 hexadecimal digits that identify the model: of the configuration files, the tokenizer, and of
	 * every tensor its name, type, shape and beginning; and of the adapters' values and weights. */
	const char *digest;
	/** A line for a user about tensors of the files that are not used, such as LoRA weights; NULL: none.
	 */
	const char *unused;
};
void smalti_model_info(const struct smalti_model *model, struct smalti_model_info *info);

SMALTI_END_DECLS
