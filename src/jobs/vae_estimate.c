/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/vae_estimate.h"

#include "base/alloc.h"
#include "graphs/vae_cost.h"
#include "jobs/vae_speed.h"

#include <stdlib.h>

void smalti_vae_estimate_free(struct smalti_vae_estimate *estimate)
{
	free(estimate->maps);
	*estimate = (struct smalti_vae_estimate){0};
}

static int list_maps(const struct smalti_vae_net *l, const struct smalti_vae_plan *plan,
		     struct smalti_vae_estimate *estimate, struct smalti_error *error)
{
	const int64_t rows = plan->cut.first[plan->cut.bands];
	estimate->maps = smalti_calloc(l->count + 1, sizeof(*estimate->maps), error);
	if (!estimate->maps)
		return -1;
	estimate->count = l->count + 1;
	for (int i = 0; i <= l->count; i++) {
		const struct smalti_vae_shape *shape = &l->map[i];
		estimate->maps[i] = (struct smalti_vae_map){
		    .layer = i ? l->layer[i - 1].name : "input",
		    .height = rows * shape->up / shape->down,
		    .width = plan->width * shape->up / shape->down,
		    .channels = shape->channels,
		    .storage = smalti_storage_names[plan->storage[i]],
		    .times = plan->times[i],
		    .flops = i ? smalti_vae_layer_flops(l, i - 1, (double)rows * (double)plan->width) : 0};
	}
	return 0;
}

/* The plan is the one that runs, chosen at ordinary speeds; the machine's own only say how long it takes. */
static int estimate_time(const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			 struct smalti_error *error)
{
	struct smalti_vae_budget budget;
	smalti_session_sleep(request->session);
	double *speeds = smalti_vae_speeds(request->net, plan->width, error);
	smalti_session_wake(request->session);
	int status = speeds ? smalti_vae_request_budget(request, &budget, error) : -1;
	if (status == 0) {
		budget.seconds_per_flop = speeds;
		status = smalti_vae_plan_predict(plan, request->net, &budget, error);
	}
	free(speeds);
	return status;
}

int smalti_vae_request_estimate(const struct smalti_vae_request *request,
				struct smalti_vae_estimate *estimate, struct smalti_error *error)
{
	const struct smalti_vae_net *layers = request->net;
	struct smalti_vae_plan plan;
	*estimate = (struct smalti_vae_estimate){0};
	int status = smalti_vae_request_plan(request, &plan, error);
	if (status == 0)
		status = estimate_time(request, &plan, error);
	if (status == 0)
		status = list_maps(layers, &plan, estimate, error);
	if (status == 0) {
		const int64_t rows = plan.cut.first[1],
			      scale = plan.cut.first[plan.cut.bands] / request->height;
		estimate->tile_rows = rows / scale;
		estimate->memory = plan.memory + smalti_vae_request_fixed_bytes(request);
		estimate->scratch = plan.offloaded;
		estimate->flops = plan.flops;
		estimate->min_flops =
		    smalti_vae_net_flops(layers, (double)plan.cut.first[plan.cut.bands] * (double)plan.width);
		estimate->seconds = plan.seconds;
	}
	smalti_vae_plan_free(&plan);
	return status;
}
