/* SPDX-License-Identifier: Apache-2.0 */

#include "graphs/strategy/choose.h"
#include "graphs/vae/plan.h"
#include "jobs/plan.h"
#include "jobs/vae.h"
#include "ranks/ranks.h"
#include "rt/devices_alone.h"

#include <xxhash.h>

const char *const smalti_vae_doing[] = {"decoding", "encoding"};

static int check_side(const char *name, int64_t pixels, int64_t factor, struct smalti_error *error)
{
	if (pixels >= factor && pixels <= SMALTI_SIDE_MAX && pixels % factor == 0)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "%s of the image: expected a multiple of %" PRId64 " up to %d, found %" PRId64,
			   name, factor, SMALTI_SIDE_MAX, pixels);
}

int smalti_vae_request_check(const struct smalti_vae *vae, const struct smalti_vae_request *request,
			     struct smalti_error *error)
{
	const int64_t factor = smalti_vae_factor(&vae->config);
	if (check_side("height", request->height, factor, error) < 0 ||
	    check_side("width", request->width, factor, error) < 0 ||
	    smalti_check_range(request->tile_rows, 0, INT64_MAX, "tile rows", error) < 0)
		return -1;
	if (request->scratch && smalti_ranks_count() > 1)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "scratch: expected none over several processes, found %s: allow each of "
				   "them more memory, or use one process",
				   request->scratch);
	return smalti_check_range((int)request->store, 0, SMALTI_PRECISION_BF16, "store", error);
}

uint64_t smalti_vae_plan_digest(const struct smalti_vae_plan *plan, int maps)
{
	const struct smalti_partition *bands = &plan->partition;
	const int64_t numbers[] = {plan->workers, plan->window, plan->bounded, plan->bf16, bands->bands};
	const uint64_t digest = XXH64(numbers, sizeof(numbers), 0);
	return XXH64(plan->storage, (size_t)maps * sizeof(*plan->storage),
		     XXH64(bands->first, (size_t)(bands->bands + 1) * sizeof(*bands->first), digest));
}

int64_t smalti_vae_fixed_bytes(const struct smalti_vae_net *net)
{
	return SMALTI_PROGRAM_BYTES + smalti_weights_bytes(net->weights);
}

int smalti_vae_request_budget(const struct smalti_session *session, const struct smalti_vae_net *net,
			      const struct smalti_vae_request *request, struct smalti_vae_budget *budget,
			      struct smalti_error *error)
{
	*budget = smalti_vae_no_budget(session->planned_workers);
	budget->memory = session->memory - smalti_vae_fixed_bytes(net);
	budget->bf16 = request->store == SMALTI_PRECISION_BF16;
	if (request->scratch)
		budget->scratch = smalti_offload_space(request->scratch, error);
	return budget->scratch < 0 ? -1 : 0;
}

/* Prefers a plan that fits, then the faster one, or if none fits the one with less memory. */
static bool better(const struct smalti_vae_plan *a, int status_a, const struct smalti_vae_plan *b,
		   int status_b)
{
	if (!a->storage || !b->storage)
		return a->storage;
	if (status_a != status_b)
		return status_a == 0;
	return status_a == 0 ? a->seconds < b->seconds : a->memory < b->memory;
}

/* Tells whether bands are for devices that do everything: they gain nothing from many bands. */
static bool is_for_devices(const struct smalti_session *session)
{
	return smalti_devices_alone(session) &&
	       smalti_devices_have(&session->device_counts, SMALTI_DEVICES_LARGE);
}

/* Tries heights: high bands waste less at their borders, low ones need less memory. */
static int find_plan(const struct smalti_session *session, const struct smalti_vae_net *net,
		     const struct smalti_vae_request *request, const struct smalti_vae_budget *budget,
		     struct smalti_vae_plan *best, struct smalti_error *error)
{
	const int64_t factor = smalti_vae_factor(&net->config);
	const int64_t height = request->height / factor, width = request->width / factor;
	const int64_t max = smalti_vae_band_rows(session, net, height, width);
	const int64_t choices[] = {max, SMALTI_TILE_ROWS, 4, 2, 1};
	int best_status = smalti_vae_net_plan(
	    net, height, width, request->tile_rows ? request->tile_rows : choices[0], budget, best, error);
	const bool chosen = request->tile_rows || (best_status == 0 && is_for_devices(session));
	for (size_t i = max > SMALTI_TILE_ROWS ? 1 : 2; i < COUNT_OF(choices) && !chosen; i++) {
		struct smalti_vae_plan plan;
		struct smalti_error refused = SMALTI_NO_ERROR;
		const int status =
		    smalti_vae_net_plan(net, height, width, choices[i], budget, &plan, &refused);
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

/* Returns the bytes of a layer's tiles, of what it reads and what it makes, for a row of latents. */
static int64_t row_bytes(const struct smalti_vae_net *net, int layer, int64_t width)
{
	int64_t bytes = 0;
	for (int map = layer; map < layer + 2; map++) {
		const struct smalti_vae_shape *shape = &net->map[map];
		bytes += width * shape->up * shape->up / (shape->down * shape->down) * shape->channels *
			 (int64_t)sizeof(float);
	}
	return bytes;
}

int64_t smalti_vae_band_rows(const struct smalti_session *session, const struct smalti_vae_net *net,
			     int64_t height, int64_t width)
{
	int64_t max = 1;
	if (!is_for_devices(session))
		return SMALTI_TILE_ROWS;
	for (int layer = 0; layer < net->count; layer++)
		max = smalti_max(max, row_bytes(net, layer, width));
	const int64_t rows = session->task_bytes / 2 / max;
	if (rows <= SMALTI_TILE_ROWS)
		return SMALTI_TILE_ROWS;
	const int64_t bands = (height + rows - 1) / rows;
	return smalti_max(SMALTI_TILE_ROWS, (height + bands - 1) / bands);
}

int64_t smalti_vae_shared_rows(int64_t height, int64_t places)
{
	int64_t best = SMALTI_TILE_ROWS, fewest = INT64_MAX;
	for (int64_t rows = SMALTI_TILE_ROWS; rows > 0; rows--) {
		const int64_t bands = (height + rows - 1) / rows;
		const int64_t max = (bands + places - 1) / places * rows;
		if (max < fewest) {
			best = rows;
			fewest = max;
		}
	}
	return best;
}

/* Reads the shares of the request; all 0: it has none. Ranks have equal ones then. */
static int read_shares(const struct smalti_session *session, const struct smalti_vae_request *request,
		       double *shares, struct smalti_error *error)
{
	const int places = smalti_session_place_count(session);
	struct smalti_place_facts facts;
	for (int place = 0; place < places && !request->shares && smalti_ranks_count() > 1; place++)
		shares[place] = 1;
	if (!smalti_is_auto(request->shares))
		return request->shares ? smalti_shares_read(request->shares, places, shares, error) : 0;
	if (smalti_place_facts_of(session, &facts, error) < 0)
		return -1;
	smalti_shares_by_rate(&facts, shares);
	smalti_place_facts_free(&facts);
	return 0;
}

int smalti_vae_request_plan(const struct smalti_session *session, const struct smalti_vae_net *net,
			    const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			    struct smalti_error *error)
{
	struct smalti_vae_budget budget;
	struct smalti_error refused = SMALTI_NO_ERROR;
	struct smalti_vae_request now = *request;
	const int places = smalti_session_place_count(session);
	int sharing = 0;
	*plan = (struct smalti_vae_plan){0};
	SCOPED(free) double *shares = smalti_calloc(places, sizeof(*shares), error);
	if (!shares || read_shares(session, request, shares, error) < 0 ||
	    smalti_vae_request_budget(session, net, request, &budget, error) < 0)
		return -1;
	for (int place = 0; place < places; place++)
		sharing += shares[place] > 0;
	if (sharing > 1 && !now.tile_rows)
		now.tile_rows =
		    smalti_vae_shared_rows(request->height / smalti_vae_factor(&net->config), sharing);
	if (find_plan(session, net, &now, &budget, plan, &refused) == 0)
		return sharing ? smalti_partition_distribute(&plan->partition, shares, places, error) : 0;
	if (!plan->storage)
		return smalti_pass(error, &refused);
	return smalti_fail(
	    error, SMALTI_ENOMEM,
	    "%s an image of %" PRId64 "x%" PRId64 " needs %" PRId64 " MB of memory at least, but %" PRId64
	    " MB are allowed: raise the memory limit, or give a scratch directory with more space",
	    smalti_vae_doing[net->direction], request->width, request->height,
	    ((plan->memory + smalti_vae_fixed_bytes(net)) >> 20) + 1, session->memory >> 20);
}
