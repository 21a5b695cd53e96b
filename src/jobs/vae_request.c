/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/vae_request.h"

#include "graphs/vae_search.h"
#include "jobs/plan.h"

#include <inttypes.h>

const char *const smalti_vae_doing[SMALTI_VAE_DIRECTIONS] = {"decoding", "encoding"};

int64_t smalti_vae_request_fixed_bytes(const struct smalti_vae_request *request)
{
	return SMALTI_PROGRAM_BYTES + smalti_weights_bytes(request->net->weights);
}

int smalti_vae_request_budget(const struct smalti_vae_request *request, struct smalti_vae_budget *budget,
			      struct smalti_error *error)
{
	*budget = smalti_vae_no_budget(smalti_session_workers(request->session));
	budget->memory = smalti_session_memory(request->session) - smalti_vae_request_fixed_bytes(request);
	budget->bf16 = request->store_bf16;
	if (request->scratch)
		budget->scratch = smalti_offload_space(request->scratch, error);
	return budget->scratch < 0 ? -1 : 0;
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
static int find_plan(const struct smalti_vae_request *request, const struct smalti_vae_budget *budget,
		     struct smalti_vae_plan *best, struct smalti_error *error)
{
	static const int64_t choices[] = {SMALTI_TILE_ROWS, 4, 2, 1};
	int best_status =
	    smalti_vae_net_plan(request->net, request->height, request->width,
				request->tile_rows ? request->tile_rows : choices[0], budget, best, error);
	for (size_t i = 1; i < sizeof(choices) / sizeof(choices[0]) && !request->tile_rows; i++) {
		struct smalti_vae_plan plan;
		struct smalti_error refused = SMALTI_NO_ERROR;
		const int status = smalti_vae_net_plan(request->net, request->height, request->width,
						       choices[i], budget, &plan, &refused);
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

static int refuse(const struct smalti_vae_request *request, const struct smalti_vae_plan *plan,
		  struct smalti_error *error)
{
	const int64_t factor = smalti_vae_factor(&request->net->config);
	return smalti_fail(
	    error, SMALTI_ENOMEM,
	    "%s an image of %" PRId64 "x%" PRId64 " needs %" PRId64 " MB of memory at least, but %" PRId64
	    " MB are allowed: raise the memory limit, or give a scratch directory with more space",
	    smalti_vae_doing[request->net->direction], factor * request->width, factor * request->height,
	    ((plan->memory + smalti_vae_request_fixed_bytes(request)) >> 20) + 1,
	    smalti_session_memory(request->session) >> 20);
}

int smalti_vae_request_plan(const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			    struct smalti_error *error)
{
	struct smalti_vae_budget budget;
	struct smalti_error refused = SMALTI_NO_ERROR;
	*plan = (struct smalti_vae_plan){0};
	if (smalti_vae_request_budget(request, &budget, error) < 0)
		return -1;
	if (find_plan(request, &budget, plan, &refused) == 0)
		return 0;
	return plan->storage ? refuse(request, plan, error)
			     : smalti_fail(error, refused.code, "%s", refused.message);
}

int smalti_vae_request_begin(const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			     struct smalti_error *error)
{
	if (smalti_vae_request_plan(request, plan, error) < 0)
		return -1;
	if (plan->offloaded)
		plan->file = smalti_offload_open(request->scratch, plan->offloaded, error);
	return plan->offloaded && !plan->file ? -1 : 0;
}

void smalti_vae_request_end(struct smalti_vae_plan *plan)
{
	smalti_offload_close(plan->file);
	smalti_vae_plan_free(plan);
}
