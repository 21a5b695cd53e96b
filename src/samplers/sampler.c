/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/sampler.h"
#include "samplers/schedule.h"

static const struct scheduler {
	smalti_place *place;
	smalti_fill *fill;
	smalti_level *level;
	bool clips; /* has the key clip_sample */
	int calls;  /* of the model in a step, but for the last step's single one */
} schedulers[SMALTI_SCHEDULERS] = {
    [SMALTI_SCHEDULER_DPM_SOLVER] = {smalti_place_dpm_solver, smalti_fill_dpm_solver, smalti_level_of_point,
				     false, 1},
    [SMALTI_SCHEDULER_UNIPC] = {smalti_place_unipc, smalti_fill_unipc, smalti_level_of_point, false, 1},
    [SMALTI_SCHEDULER_EULER] = {smalti_place_euler, smalti_fill_euler, smalti_level_of_sigma, false, 1},
    [SMALTI_SCHEDULER_EULER_ANCESTRAL] = {smalti_place_euler, smalti_fill_euler_ancestral,
					  smalti_level_of_sigma, false, 1},
    [SMALTI_SCHEDULER_HEUN] = {smalti_place_euler, smalti_fill_heun, smalti_level_of_sigma, true, 2},
    [SMALTI_SCHEDULER_DDIM] = {smalti_place_ddim, smalti_fill_ddim, smalti_level_of_timestep, true, 1},
    [SMALTI_SCHEDULER_LCM] = {smalti_place_lcm, smalti_fill_lcm, smalti_level_of_timestep, true, 1},
    [SMALTI_SCHEDULER_SA_SOLVER] = {smalti_place_sa_solver, smalti_fill_sa_solver, smalti_level_of_point,
				    false, 1},
    [SMALTI_SCHEDULER_DDPM] = {smalti_place_ddpm, smalti_fill_ddpm, smalti_level_of_timestep, true, 1},
    [SMALTI_SCHEDULER_FLOW_EULER] = {smalti_place_flow_match, smalti_fill_euler, smalti_level_of_point, false,
				     1},
    [SMALTI_SCHEDULER_FLOW_HEUN] = {smalti_place_flow_match, smalti_fill_heun, smalti_level_of_point, false,
				    2},
};

/* Fills what all schedulers have in each row. */
static void fill_rows(const struct smalti_schedule *schedule, const struct scheduler *scheduler,
		      struct smalti_sampler *sampler)
{
	const struct smalti_scheduler_config *config = schedule->config;
	for (int64_t row = 0; row < sampler->steps; row++) {
		struct smalti_sampler_step *step = &sampler->step[row];
		const int64_t then = schedule->first + row / scheduler->calls + 1;
		const int64_t now = schedule->first + (row + scheduler->calls - 1) / scheduler->calls;
		step->timestep = schedule->timestep[now];
		step->input_scale = 1;
		step->clip = scheduler->clips && config->clip_sample ? config->clip_sample_range : 0;
		step->level = then < schedule->steps ? scheduler->level(schedule, then)
						     : (struct smalti_sampler_level){1, 0};
	}
}

static struct smalti_sampler *fill(const struct smalti_schedule *schedule, struct smalti_error *error)
{
	const struct scheduler *scheduler = &schedulers[schedule->config->scheduler];
	const int64_t steps = (schedule->steps - schedule->first - 1) * scheduler->calls + 1;
	struct smalti_sampler *sampler = smalti_calloc(
	    1, (int64_t)(sizeof(*sampler) + (size_t)steps * sizeof(struct smalti_sampler_step)), error);
	if (!sampler)
		return NULL;
	sampler->steps = steps;
	sampler->initial_sigma = 1;
	sampler->start = scheduler->level(schedule, schedule->first);
	fill_rows(schedule, scheduler, sampler);
	scheduler->fill(schedule, sampler);
	for (int64_t i = 0; i < steps; i++) {
		sampler->step[i].predictions = sampler->predictions;
		sampler->step[i].history = sampler->history;
	}
	return sampler;
}

/* Drops the first steps as the strength says. */
static int choose_first(struct smalti_schedule *schedule, struct smalti_error *error)
{
	const struct smalti_scheduler_config *config = schedule->config;
	if (config->strength == 0 || config->scheduler == SMALTI_SCHEDULER_LCM) /* which places by it */
		return 0;
	const int64_t taken = (int64_t)((double)schedule->steps * config->strength);
	schedule->first = schedule->steps - smalti_min(taken, schedule->steps);
	if (taken > 0)
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "strength %g of %lld steps leaves none; ask for more steps, or a strength of %g or "
	    "more",
	    config->strength, (long long)schedule->steps, 1 / (double)schedule->steps);
}

struct smalti_sampler *smalti_sampler_new(const struct smalti_scheduler_config *config, int64_t steps,
					  struct smalti_error *error)
{
	struct smalti_train_sigmas train = {0};
	if (steps < 1 || steps > config->train_timesteps) {
		smalti_fail(error, SMALTI_EINVAL, "%lld steps; 1 to num_train_timesteps (%lld) is possible",
			    (long long)steps, (long long)config->train_timesteps);
		return NULL;
	}
	struct smalti_sampler *sampler = NULL;
	struct smalti_schedule schedule = {.config = config, .train = &train, .steps = steps};
	schedule.timestep = smalti_calloc(steps, sizeof(double), error);
	schedule.sigma = smalti_calloc(steps + 1, sizeof(double), error);
	if (choose_first(&schedule, error) == 0 && schedule.timestep && schedule.sigma &&
	    smalti_train_sigmas_init(&train, config, error) == 0 &&
	    schedulers[config->scheduler].place(&schedule, error) == 0)
		sampler = fill(&schedule, error);
	free(schedule.sigma);
	free(schedule.timestep);
	smalti_train_sigmas_clear(&train);
	return sampler;
}
