/* SPDX-License-Identifier: Apache-2.0 */
#include "train/initial.h"
#include "codelets/codelets.h"
#include "samplers/draws.h"

#include <math.h>

static bool has(const char *name, const char *part)
{
	return strstr(name, part) != NULL;
}

static bool begins_with(const char *name, const char *beginning)
{
	return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* Counts the outputs of matrices that PixArt joins together. */
static double outputs_of(const struct smalti_parameter *parameter)
{
	static const struct {
		const char *name;
		double together;
	} table[] = {{".attn1.to_q.", 3},
		     {".attn1.to_k.", 3},
		     {".attn1.to_v.", 3},
		     {".attn2.to_k.", 2},
		     {".attn2.to_v.", 2}};
	for (size_t i = 0; i < COUNT_OF(table); i++)
		if (has(parameter->name, table[i].name))
			return table[i].together * (double)parameter->shape[0];
	return (double)parameter->shape[0];
}

/* The distribution from which a parameter is drawn. */
struct smalti_initial {
	bool normal;
	float offset, factor;
};

static struct smalti_initial initial_of(const struct smalti_parameter *parameter)
{
	const char *name = parameter->name;
	const double inputs = (double)parameter->count / (double)parameter->shape[0];
	if (has(name, ".lora_A."))
		return (struct smalti_initial){true, 0, 1 / (float)parameter->shape[0]};
	if (has(name, ".lora_B."))
		return (struct smalti_initial){false, 0, 0};
	if (smalti_stem(name, "scale_shift_table") >= 0)
		return (struct smalti_initial){true, 0, (float)(1 / sqrt(inputs))};
	if (smalti_stem(name, ".bias") >= 0 || begins_with(name, "proj_out.") ||
	    has(name, ".attn2.to_out.0."))
		return (struct smalti_initial){false, 0, 0};
	if (begins_with(name, "adaln_single.") || begins_with(name, "caption_projection."))
		return (struct smalti_initial){true, 0, 0.02f};
	const float limit = (float)sqrt(6 / (inputs + outputs_of(parameter)));
	return (struct smalti_initial){false, -limit, 2 * limit};
}

static void draw(const struct smalti_parameter *tensor, struct smalti_task_group *task_group, uint64_t seed,
		 struct smalti_tile *value)
{
	const struct smalti_initial initial = initial_of(tensor);
	smalti_insert(initial_value, task_group, (.value = value), .count = tensor->count,
		      .seed = smalti_stream_seed(seed, SMALTI_STREAM_INITIAL, 0, (uint64_t)tensor->tensor),
		      .normal = initial.normal, .offset = initial.offset, .factor = initial.factor);
}

void smalti_initial_values(const struct smalti_parameters *parameters, struct smalti_task_group *task_group,
			   uint64_t seed)
{
	for (int64_t i = 0; i < parameters->count; i++) {
		const struct smalti_parameter *parameter = &parameters->list[i];
		const struct smalti_parameter tensor = smalti_parameter_whole(parameter);
		if (!parameter->cut.is_part) {
			draw(&tensor, task_group, seed, parameter->value);
			continue;
		}
		struct smalti_tile *whole = smalti_parameter_tile(&tensor, task_group);
		draw(&tensor, task_group, seed, whole);
		smalti_parameter_take(parameter, task_group, whole);
		smalti_tile_release(whole);
	}
}
