/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_DIT_H
#define SMALTI_GRAPHS_DIT_H

#include "graphs/weights.h"
#include "io/config.h"
#include "rt/grid.h"

/* The diffusion transformer (specification 1.3, 1.4, 3). */
struct smalti_dit;

struct smalti_dit *smalti_dit_new(struct smalti_scope *scope, const struct smalti_transformer_config *config,
				  const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				  struct smalti_error *error);
void smalti_dit_free(struct smalti_dit *dit);
const struct smalti_transformer_config *smalti_dit_config(const struct smalti_dit *dit);
int64_t smalti_dit_weight_bytes(const struct smalti_dit *dit);
/* Before the first task: see smalti_weights_leave_raw(). */
void smalti_dit_leave_raw(struct smalti_dit *dit);
/* Bytes of the mapped file. */
int64_t smalti_dit_file_bytes(const struct smalti_dit *dit);
/* The most that a forward in bands of `band_tokens` holds at once, besides the weights and captions. */
/* Bytes of a caption of so many tokens, and of making it. */
int64_t smalti_dit_caption_bytes(const struct smalti_dit *dit, int64_t tokens);
int64_t smalti_dit_working_bytes(const struct smalti_dit *dit, int64_t tokens, int64_t band_tokens,
				 int branches);

/* The arithmetic of a forward for `count` captions of that many tokens. */
double smalti_dit_flops(const struct smalti_dit *dit, int64_t tokens, const int64_t *caption_tokens,
			int count);

/* A caption as all steps read it: each block's cross-attention keys and values (3.4). */
struct smalti_caption;
/* `text` f32 [tokens, caption_channels]. */
struct smalti_caption *smalti_dit_caption(struct smalti_dit *dit, struct smalti_scope *scope,
					  struct smalti_tile *text, int64_t tokens);
void smalti_caption_release(struct smalti_caption *caption);

/* What a picture of one size needs at any step: the timestep embeddings of all steps (one row each), the
 * positions. height, width: of the latent; when the model wants micro-conditions they are its pixels and
 * ratio, vae_factor pixels to a latent. */
struct smalti_conditions;
struct smalti_conditions *smalti_dit_conditions(struct smalti_dit *dit, struct smalti_scope *scope,
						const float *timesteps, int64_t steps, int64_t height,
						int64_t width, int64_t vae_factor);
void smalti_conditions_release(struct smalti_conditions *conditions);

/* One forward at `step` for each caption: x are the latents' tokens f32 [n, in_channels·patch²] in the
 * bands of `cut`, multiplied by input_scale on the way in. v[k] receives the output f32
 * [n, patch²·out_channels] for captions[k]; what the captions have in common is computed once. The caller
 * releases the v. */
void smalti_dit_forward(struct smalti_dit *dit, struct smalti_scope *scope,
			const struct smalti_conditions *conditions, int64_t step, float input_scale,
			const struct smalti_grid *x, struct smalti_caption *const *captions, int count,
			struct smalti_grid *v);

#endif
