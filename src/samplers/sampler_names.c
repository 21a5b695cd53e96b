/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/sampler.h"

#define NAMED(text, of) .name = (text), .scheduler = SMALTI_SCHEDULER_##of
#define KARRAS          .sigmas = SMALTI_SIGMAS_KARRAS
#define SDE             .algorithm = SMALTI_SDE_DPM_SOLVER_PP

static const struct smalti_sampler_name names[] = {
    {NAMED("dpm++", DPM_SOLVER)},
    {NAMED("dpm++ karras", DPM_SOLVER), KARRAS},
    {NAMED("dpm++ 3m", DPM_SOLVER), .order = 3},
    {NAMED("dpm++ 3m karras", DPM_SOLVER), KARRAS, .order = 3},
    {NAMED("dpm++ sde", DPM_SOLVER), SDE},
    {NAMED("dpm++ sde karras", DPM_SOLVER), KARRAS, SDE},
    {NAMED("dpm", DPM_SOLVER), .algorithm = SMALTI_DPM_SOLVER_EPSILON},
    {NAMED("unipc", UNIPC)},
    {NAMED("unipc karras", UNIPC), KARRAS},
    {NAMED("euler", EULER)},
    {NAMED("euler karras", EULER), KARRAS},
    {NAMED("euler a", EULER_ANCESTRAL)},
    {NAMED("heun", HEUN)},
    {NAMED("heun karras", HEUN), KARRAS},
    {NAMED("ddim", DDIM)},
    {NAMED("ddpm", DDPM)},
    {NAMED("lcm", LCM)},
    {NAMED("sa-solver", SA_SOLVER)},
    {NAMED("dmd", DDPM), .steps = 1},
    {NAMED("flow euler", FLOW_EULER)},
    {NAMED("flow heun", FLOW_HEUN)},
};

enum { COUNT = COUNT_OF(names) };

const struct smalti_sampler_name *smalti_sampler_name_at(int index)
{
	return index >= 0 && index < COUNT ? &names[index] : NULL;
}

const struct smalti_sampler_name *smalti_sampler_name_find(const char *name, struct smalti_error *error)
{
	char list[512] = "";
	for (int i = 0; i < COUNT; i++) {
		if (strcmp(name, names[i].name) == 0)
			return &names[i];
		smalti_append(list, sizeof(list), ", ", "\"%s\"", names[i].name);
	}
	smalti_fail(error, SMALTI_EINVAL, "no scheduler is called \"%s\"; there are %s", name, list);
	return NULL;
}

void smalti_sampler_name_set(const struct smalti_sampler_name *name, struct smalti_scheduler_config *config)
{
	if (name->sigmas != SMALTI_SIGMAS_TRAINED)
		config->sigmas = name->sigmas;
	if (name->scheduler != SMALTI_SCHEDULER_DPM_SOLVER)
		return;
	config->algorithm = name->algorithm;
	if (name->order)
		config->solver_order = name->order;
	if (name->algorithm == SMALTI_DPM_SOLVER_EPSILON) /* at no noise it has no step */
		config->final_sigma = SMALTI_FINAL_SIGMA_MIN;
}

const char *smalti_sampler_name_of(const struct smalti_scheduler_config *config)
{
	const char *found = NULL;
	for (int i = 0; i < COUNT; i++) { /* the last says the most */
		struct smalti_scheduler_config named = *config;
		smalti_sampler_name_set(&names[i], &named);
		if (names[i].scheduler == config->scheduler && named.sigmas == config->sigmas &&
		    named.algorithm == config->algorithm && named.solver_order == config->solver_order &&
		    names[i].steps == 0)
			found = names[i].name;
	}
	return found;
}
