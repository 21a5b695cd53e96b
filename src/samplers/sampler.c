/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/sampler.h"
#include "samplers/schedule.h"

static const struct scheduler {
	smalti_place *place;
	smalti_fill *fill;
	int history;
	bool clips; /* has the key clip_sample */
} schedulers[SMALTI_SCHEDULERS] = {
    [SMALTI_SCHEDULER_DPM_SOLVER] = {smalti_place_dpm_solver, smalti_fill_dpm_solver, 1, false},
    [SMALTI_SCHEDULER_EULER] = {smalti_place_euler, smalti_fill_euler, 0, false},
    [SMALTI_SCHEDULER_DDIM] = {smalti_place_ddim, smalti_fill_ddim, 0, true},
    [SMALTI_SCHEDULER_LCM] = {smalti_place_lcm, smalti_fill_lcm, 0, true},
    [SMALTI_SCHEDULER_SA_SOLVER] = {smalti_place_sa_solver, smalti_fill_sa_solver, 3, false},
    [SMALTI_SCHEDULER_DDPM] = {smalti_place_dmd, smalti_fill_dmd, 0, true},
};

void smalti_predict_x0(struct smalti_sampler_step *step, enum smalti_prediction prediction,
		       struct smalti_point point)
{
	switch (prediction) {
	case SMALTI_PREDICTS_EPSILON:
		step->x0.x = 1 / point.alpha;
		step->x0.output = -point.sigma / point.alpha;
		break;
	case SMALTI_PREDICTS_V:
		step->x0.x = point.alpha;
		step->x0.output = -point.sigma;
		break;
	case SMALTI_PREDICTS_SAMPLE:
		step->x0.output = 1;
		break;
	}
}

static struct smalti_sampler *fill(const struct smalti_schedule *schedule, struct smalti_error *error)
{
	const struct smalti_scheduler_config *config = schedule->config;
	const struct scheduler *scheduler = &schedulers[config->scheduler];
	int64_t size = (int64_t)sizeof(struct smalti_sampler_step);
	struct smalti_sampler *sampler =
	    smalti_calloc(1, (int64_t)sizeof(*sampler) + schedule->steps * size, error);
	if (!sampler)
		return NULL;
	sampler->steps = schedule->steps;
	sampler->initial_sigma = 1;
	sampler->history = scheduler->history;
	for (int64_t i = 0; i < schedule->steps; i++) {
		sampler->step[i].timestep = schedule->timestep[i];
		sampler->step[i].input_scale = 1;
		sampler->step[i].clip =
		    scheduler->clips && config->clip_sample ? config->clip_sample_range : 0;
		sampler->step[i].history = scheduler->history;
	}
	scheduler->fill(schedule, sampler);
	return sampler;
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
	if (schedule.timestep && schedule.sigma && smalti_train_sigmas_init(&train, config, error) == 0 &&
	    schedulers[config->scheduler].place(&schedule, error) == 0)
		sampler = fill(&schedule, error);
	free(schedule.sigma);
	free(schedule.timestep);
	smalti_train_sigmas_clear(&train);
	return sampler;
}

static const struct smalti_sampler_name names[] = {
    {"dpm++", SMALTI_SCHEDULER_DPM_SOLVER, false}, {"dpm++ karras", SMALTI_SCHEDULER_DPM_SOLVER, true},
    {"euler", SMALTI_SCHEDULER_EULER, false},      {"ddim", SMALTI_SCHEDULER_DDIM, false},
    {"lcm", SMALTI_SCHEDULER_LCM, false},          {"sa-solver", SMALTI_SCHEDULER_SA_SOLVER, false},
    {"dmd", SMALTI_SCHEDULER_DDPM, false},
};

enum { COUNT = COUNT_OF(names) };

const struct smalti_sampler_name *smalti_sampler_name_at(int index)
{
	return index >= 0 && index < COUNT ? &names[index] : NULL;
}

const struct smalti_sampler_name *smalti_sampler_name_find(const char *name, struct smalti_error *error)
{
	char list[256] = "";
	for (int i = 0; i < COUNT; i++) {
		if (strcmp(name, names[i].name) == 0)
			return &names[i];
		smalti_append(list, sizeof(list), ", ", "\"%s\"", names[i].name);
	}
	smalti_fail(error, SMALTI_EINVAL, "no scheduler is called \"%s\"; there are %s", name, list);
	return NULL;
}

const char *smalti_sampler_name_of(const struct smalti_scheduler_config *config)
{
	for (int i = 0; i < COUNT; i++)
		if (names[i].scheduler == config->scheduler && names[i].karras == config->karras_sigmas)
			return names[i].name;
	return NULL;
}
