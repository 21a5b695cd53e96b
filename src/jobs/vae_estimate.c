/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae/cost.h"
#include "jobs/vae.h"

void smalti_vae_estimate_free(struct smalti_vae_estimate *estimate)
{
	free(estimate->maps);
	*estimate = (struct smalti_vae_estimate){0};
}

static int list_maps(const struct smalti_vae_net *l, const struct smalti_vae_plan *plan,
		     struct smalti_vae_estimate *estimate, struct smalti_error *error)
{
	const int64_t rows = plan->partition.first[plan->partition.bands];
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

/* Predicts the plan's time at the machine's speeds. The plan was chosen at ordinary speeds, like one that
 * runs. */
static int estimate_time(const struct smalti_session *session, const struct smalti_vae_net *net,
			 const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			 struct smalti_error *error)
{
	struct smalti_vae_budget budget;
	smalti_session_sleep(session);
	SCOPED(free) double *speeds = smalti_vae_speeds(net, plan->width, error);
	smalti_session_wake(session);
	int status = speeds ? smalti_vae_request_budget(session, net, request, &budget, error) : -1;
	if (status == 0) {
		budget.seconds_per_flop = speeds;
		status = smalti_vae_plan_predict(plan, net, &budget, error);
	}
	return status;
}

static void sum_up(const struct smalti_vae_net *net, const struct smalti_vae_request *request,
		   const struct smalti_vae_plan *plan, struct smalti_vae_estimate *estimate)
{
	const int64_t rows = plan->partition.first[plan->partition.bands];
	const int64_t latent_rows = request->height / smalti_vae_factor(&net->config);
	estimate->tile_rows = plan->partition.first[1] / (rows / latent_rows);
	estimate->memory = plan->memory + smalti_vae_fixed_bytes(net);
	estimate->scratch = plan->offloaded;
	estimate->flops = plan->flops;
	estimate->min_flops = smalti_vae_net_flops(net, (double)rows * (double)plan->width);
	estimate->seconds = plan->seconds;
}

static int make_estimate(struct smalti_vae *vae, enum smalti_vae_direction direction,
			 const struct smalti_vae_request *request, struct smalti_vae_estimate *estimate,
			 struct smalti_error *error)
{
	if (smalti_check_given(vae, "VAE", error) < 0 || smalti_check_given(request, "request", error) < 0 ||
	    smalti_check_given(estimate, "estimate", error) < 0 ||
	    smalti_vae_request_check(vae, request, error) < 0)
		return -1;
	struct smalti_vae_plan plan = {0};
	*estimate = (struct smalti_vae_estimate){0};
	const struct smalti_vae_net *net = smalti_vae_open_net(vae, direction, error);
	const bool made = net && smalti_vae_request_plan(vae->session, net, request, &plan, error) == 0 &&
			  estimate_time(vae->session, net, request, &plan, error) == 0 &&
			  list_maps(net, &plan, estimate, error) == 0;
	if (made)
		sum_up(net, request, &plan, estimate);
	smalti_vae_plan_free(&plan);
	return made ? 0 : -1;
}

int smalti_vae_estimate_decoding(struct smalti_vae *vae, const struct smalti_vae_request *request,
				 struct smalti_vae_estimate *estimate, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	return make_estimate(vae, SMALTI_VAE_DECODE, request, estimate, error);
}

int smalti_vae_estimate_encoding(struct smalti_vae *vae, const struct smalti_vae_request *request,
				 struct smalti_vae_estimate *estimate, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	return make_estimate(vae, SMALTI_VAE_ENCODE, request, estimate, error);
}
