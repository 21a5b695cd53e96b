/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/vae_tiling.h"

#include "jobs/plan.h"

#include <inttypes.h>

const struct smalti_vae_layers *smalti_vae_half_layers(const struct smalti_vae_half *half)
{
	return half->decoder ? smalti_vae_decoder_layers(half->decoder)
			     : smalti_vae_encoder_layers(half->encoder);
}

int64_t smalti_vae_half_fixed_bytes(const struct smalti_vae_half *half)
{
	return SMALTI_PROGRAM_BYTES + smalti_weights_bytes(smalti_vae_half_layers(half)->weights);
}

int smalti_vae_half_budget(const struct smalti_vae_half *half, struct smalti_vae_budget *budget,
			   struct smalti_error *error)
{
	*budget = smalti_vae_no_budget(smalti_session_workers(half->session));
	budget->memory = smalti_session_memory(half->session) - smalti_vae_half_fixed_bytes(half);
	budget->bf16 = half->store_bf16;
	if (half->scratch)
		budget->scratch = smalti_spill_space(half->scratch, error);
	return budget->scratch < 0 ? -1 : 0;
}

static int plan_in_bands(const struct smalti_vae_half *half, int64_t tile_rows,
			 const struct smalti_vae_budget *budget, struct smalti_vae_plan *plan,
			 struct smalti_error *error)
{
	if (half->decoder)
		return smalti_vae_decoder_plan(half->decoder, half->height, half->width, tile_rows, budget,
					       plan, error);
	return smalti_vae_encoder_plan(half->encoder, half->height, half->width, tile_rows, budget, plan,
				       error);
}

/* A plan that fits before one that does not, then the faster one, else the one that asks for less. */
static bool better(const struct smalti_vae_plan *a, int status_a, const struct smalti_vae_plan *b,
		   int status_b)
{
	if (!a->storage || !b->storage)
		return a->storage;
	if (status_a != status_b)
		return status_a == 0;
	return status_a == 0 ? a->seconds < b->seconds : a->memory < b->memory;
}

/* High bands waste less at their borders, low ones need less memory. */
static int find_plan(const struct smalti_vae_half *half, const struct smalti_vae_budget *budget,
		     struct smalti_vae_plan *best, struct smalti_error *error)
{
	static const int64_t choices[] = {SMALTI_TILE_ROWS, 4, 2, 1};
	int best_status =
	    plan_in_bands(half, half->tile_rows ? half->tile_rows : choices[0], budget, best, error);
	for (size_t i = 1; i < sizeof(choices) / sizeof(choices[0]) && !half->tile_rows; i++) {
		struct smalti_vae_plan plan;
		struct smalti_error refused = SMALTI_NO_ERROR;
		const int status = plan_in_bands(half, choices[i], budget, &plan, &refused);
		if (!better(&plan, status, best, best_status)) {
			smalti_vae_plan_free(&plan);
			continue;
		}
		smalti_vae_plan_free(best);
		*best = plan;
		best_status = status;
	}
	return best_status;
}

static int refuse(const struct smalti_vae_half *half, const struct smalti_vae_plan *plan,
		  struct smalti_error *error)
{
	const int64_t factor = smalti_vae_factor(&smalti_vae_half_layers(half)->config);
	return smalti_fail(
	    error, SMALTI_ENOMEM,
	    "%s a picture of %" PRId64 "x%" PRId64 " needs %" PRId64 " MB of memory at least, but %" PRId64
	    " MB are allowed: raise the memory limit, or give a scratch folder with more space",
	    half->decoder ? "decoding" : "encoding", factor * half->width, factor * half->height,
	    ((plan->memory + smalti_vae_half_fixed_bytes(half)) >> 20) + 1,
	    smalti_session_memory(half->session) >> 20);
}

int smalti_vae_half_plan(const struct smalti_vae_half *half, struct smalti_vae_plan *plan,
			 struct smalti_error *error)
{
	struct smalti_vae_budget budget;
	struct smalti_error refused = SMALTI_NO_ERROR;
	*plan = (struct smalti_vae_plan){0};
	if (smalti_vae_half_budget(half, &budget, error) < 0)
		return -1;
	if (find_plan(half, &budget, plan, &refused) == 0)
		return 0;
	return plan->storage ? refuse(half, plan, error)
			     : smalti_fail(error, refused.code, "%s", refused.message);
}

int smalti_vae_half_begin(const struct smalti_vae_half *half, struct smalti_vae_plan *plan,
			  struct smalti_error *error)
{
	if (smalti_vae_half_plan(half, plan, error) < 0)
		return -1;
	if (plan->spilled)
		plan->file = smalti_spill_open(half->scratch, plan->spilled, error);
	return plan->spilled && !plan->file ? -1 : 0;
}

void smalti_vae_half_end(struct smalti_vae_plan *plan)
{
	smalti_spill_close(plan->file);
	smalti_vae_plan_free(plan);
}
