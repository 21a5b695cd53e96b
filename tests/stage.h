/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/pixart/dit.h"
#include "graphs/t5/t5.h"
#include "graphs/vae/ends.h"
#include "jobs/model.h"
#include "rt/session.h"

/* One stage of a model on plain arrays: inserts its graph, waits, and copies the result out. */

/* Opens a session; `policy` NULL and `cpus` 0 are the defaults. Ends the program on failure. */
struct smalti_session *stage_session(const char *policy, int64_t cpus);

/* Computes y [count, width]. */
int stage_t5(struct smalti_session *session, struct smalti_text_encoder *t5, const int32_t *ids,
	     int64_t count, float *y, struct smalti_error *error);

/* Computes y[i] [captions[i].count, width]. */
int stage_t5_together(struct smalti_session *session, struct smalti_text_encoder *t5,
		      const struct smalti_token_ids *captions, int64_t count,
		      const struct smalti_strategy *strategy, float *const *y, struct smalti_error *error);

/* Computes v [out_channels, height, width] from x [in_channels, height, width] and text [tokens,
 * caption_channels]. */
int stage_dit(struct smalti_session *session, struct smalti_denoiser *dit, const float *x, int64_t height,
	      int64_t width, float timestep, const float *text, int64_t tokens, int64_t band_tokens,
	      int64_t vae_factor, float *v, struct smalti_error *error);

/* Computes image [3, factor·height, factor·width] from latents [channels, height, width]. */
int stage_decode(struct smalti_session *session, struct smalti_vae_net *vae, const float *latents,
		 int64_t height, int64_t width, int64_t band_rows, float *image, struct smalti_error *error);
/* Decodes by a plan. */
int stage_decode_by(struct smalti_session *session, struct smalti_vae_net *vae, const float *latents,
		    const struct smalti_vae_plan *plan, float *image, struct smalti_error *error);
/* Only inserts the tasks; all feature maps are kept. */
void stage_insert_decoding(struct smalti_vae_net *vae, struct smalti_task_group *task_group,
			   struct smalti_tile *latents, int64_t height, int64_t width, int64_t band_rows,
			   smalti_row_sink sink, void *user);

/* Compute planes [2·channels, height, width] (means, deviations) from pixels [factor·height, factor·width,
 * 3]. */
int stage_encode(struct smalti_session *session, struct smalti_vae_net *vae, const float *pixels,
		 int64_t height, int64_t width, int64_t band_rows, float *planes, struct smalti_error *error);
int stage_encode_by(struct smalti_session *session, struct smalti_vae_net *vae, const float *pixels,
		    const struct smalti_vae_plan *plan, float *planes, struct smalti_error *error);
/* Returns the encoder of a model's VAE, for smalti_vae_net_free(). */
struct smalti_vae_net *stage_encoder(struct smalti_model *model, struct smalti_error *error);
