/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/vae_tiling.h"

#include "jobs/plan.h"

struct smalti_vae_budget smalti_vae_session_budget(const struct smalti_session *session, int64_t weight_bytes,
						   int64_t scratch, const double *seconds_per_flop)
{
	return (struct smalti_vae_budget){.memory = smalti_memory_budget(session) - SMALTI_PROGRAM_BYTES -
						    weight_bytes,
					  .scratch = scratch,
					  .workers = smalti_session_workers(session),
					  .seconds_per_flop = seconds_per_flop};
}

/* One half of a VAE to be tiled. */
struct half {
	const struct smalti_vae_decoder *decoder; /* the one or the other */
	const struct smalti_vae_encoder *encoder;
	int64_t height, width;
	const struct smalti_vae_budget *budget;
};

static int plan_half(const struct half *half, int64_t tile_rows, struct smalti_vae_plan *plan,
		     struct smalti_error *error)
{
	if (half->decoder)
		return smalti_vae_decoder_plan(half->decoder, half->height, half->width, tile_rows,
					       half->budget, plan, error);
	return smalti_vae_encoder_plan(half->encoder, half->height, half->width, tile_rows, half->budget,
				       plan, error);
}

/* A plan that fits before one that does not, then the faster one, else the one that asks for less. */
static bool better(const struct smalti_vae_plan *a, int status_a, const struct smalti_vae_plan *b,
		   int status_b)
{
	if (status_a != status_b)
		return status_a == 0;
	return status_a == 0 ? a->seconds < b->seconds : a->memory < b->memory;
}

/* High bands waste less at their borders, low ones need less memory. */
static int tile(const struct half *half, int64_t tile_rows, struct smalti_vae_plan *best,
		struct smalti_error *error)
{
	static const int64_t choices[] = {SMALTI_TILE_ROWS, 4, 2, 1};
	struct smalti_error last = SMALTI_NO_ERROR;
	int best_status = -1;
	*best = (struct smalti_vae_plan){0};
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct smalti_vae_plan plan;
		struct smalti_error refused = SMALTI_NO_ERROR;
		const int status = plan_half(half, tile_rows ? tile_rows : choices[i], &plan, &refused);
		if (plan.storage && (!best->storage || better(&plan, status, best, best_status))) {
			smalti_vae_plan_free(best);
			*best = plan;
			best_status = status;
			last = refused;
		} else {
			smalti_vae_plan_free(&plan);
			last = best->storage ? last : refused;
		}
		if (tile_rows)
			break;
	}
	return best_status == 0 ? 0 : smalti_fail(error, last.code, "%s", last.message);
}

int smalti_vae_tile_decoding(const struct smalti_vae_decoder *vae, int64_t height, int64_t width,
			     int64_t tile_rows, const struct smalti_vae_budget *budget,
			     struct smalti_vae_plan *plan, struct smalti_error *error)
{
	const struct half half = {.decoder = vae, .height = height, .width = width, .budget = budget};
	return tile(&half, tile_rows, plan, error);
}

int smalti_vae_tile_encoding(const struct smalti_vae_encoder *vae, int64_t height, int64_t width,
			     int64_t tile_rows, const struct smalti_vae_budget *budget,
			     struct smalti_vae_plan *plan, struct smalti_error *error)
{
	const struct half half = {.encoder = vae, .height = height, .width = width, .budget = budget};
	return tile(&half, tile_rows, plan, error);
}
