/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/sampler.h"

#include <stdio.h>
#include <string.h>

static const struct smalti_sampler_name names[] = {
    {"dpm++", SMALTI_SCHEDULER_DPM_SOLVER, false}, {"dpm++ karras", SMALTI_SCHEDULER_DPM_SOLVER, true},
    {"euler", SMALTI_SCHEDULER_EULER, false},      {"ddim", SMALTI_SCHEDULER_DDIM, false},
    {"lcm", SMALTI_SCHEDULER_LCM, false},          {"sa-solver", SMALTI_SCHEDULER_SA_SOLVER, false},
    {"dmd", SMALTI_SCHEDULER_DDPM, false},
};

enum { COUNT = sizeof(names) / sizeof(names[0]) };

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
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%s\"%s\"", i > 0 ? ", " : "", names[i].name);
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
