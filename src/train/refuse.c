/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer.h"

#include <math.h>

enum { CAUSE_LENGTH = 160 };

/* The model's parts in the order of the forward, and the layers within a block. All layers of a block add to
 * its table's gradient, so the table says least. */
static const char *const sections[] = {"pos_embed.",          "caption_projection.", "adaln_single.",
				       "transformer_blocks.", "scale_shift_table",   "proj_out."};
static const char *const layers[] = {".scale_shift_table", ".attn1.to_q.", ".attn1.to_k.", ".attn1.to_v.",
				     ".attn1.to_out.",     ".attn2.to_k.", ".attn2.to_v.", ".attn2.to_q.",
				     ".attn2.to_out.",     ".ff.net.0.",   ".ff.net.2."};

/* Returns how late the forward reaches a parameter, and so how early the backward does. */
static int64_t depth_of(const char *name)
{
	int64_t section = 0, block = 0, layer = 0;
	for (size_t i = 0; i < COUNT_OF(sections); i++)
		if (strncmp(name, sections[i], strlen(sections[i])) == 0)
			section = (int64_t)i;
	if (strncmp(name, "transformer_blocks.", strlen("transformer_blocks.")) != 0)
		return section << 40;
	block = strtoll(name + strlen("transformer_blocks."), NULL, 10);
	for (size_t i = 0; i < COUNT_OF(layers); i++)
		if (strstr(name, layers[i]))
			layer = (int64_t)i;
	return (section << 40) + (block << 8) + layer;
}

/* Names the first layer, in the order of the backward, with a gradient that is not finite. */
static void name_gradient(const struct smalti_trainer *trainer, const double *sums, char cause[CAUSE_LENGTH])
{
	const char *found = NULL;
	for (int64_t i = 0; i < trainer->parameters->count; i++) {
		const char *name = trainer->parameters->list[i].name;
		if (!isfinite(sums[i]) && (!found || depth_of(name) > depth_of(found)))
			found = name;
	}
	const char *end = found ? strrchr(found, '.') : NULL;
	const bool is_layer = end && (strcmp(end, ".weight") == 0 || strcmp(end, ".bias") == 0);
	snprintf(cause, CAUSE_LENGTH, "first in the gradients of %.*s",
		 is_layer ? (int)(end - found) : CAUSE_LENGTH, found ? found : "all layers together");
}

/* Finds where the first value that is not finite comes from, as far as forwards show it. It tries the samples
 * whose loss is not finite until a forward alone confirms one. */
static int find_cause(const struct smalti_trainer *trainer, const struct smalti_training_sample *samples,
		      const struct smalti_loss_parts *parts, const double *sums, char cause[CAUSE_LENGTH],
		      struct smalti_error *error)
{
	char layer[SMALTI_PROBE_NAME];
	name_gradient(trainer, sums, cause);
	for (int64_t i = 0; i < trainer->options->batch; i++) {
		const struct smalti_sample_work work = smalti_sample_work_of(trainer, samples, i);
		if (isfinite(parts[i].mse + parts[i].vb))
			continue;
		if (smalti_sample_probe(trainer, &work, layer, error) < 0)
			return -1;
		snprintf(cause, CAUSE_LENGTH, "first in %s of item %" PRId64, *layer ? layer : "the loss",
			 samples[i].index);
		if (*layer)
			break;
	}
	return 0;
}

int smalti_step_refuse(const struct smalti_trainer *trainer, const struct smalti_training_sample *samples,
		       const struct smalti_loss_parts *parts, const double *sums,
		       const struct smalti_step_result *result, struct smalti_error *error)
{
	char items[512] = "", cause[CAUSE_LENGTH];
	if (find_cause(trainer, samples, parts, sums, cause, error) < 0)
		return -1;
	for (int64_t i = 0; i < trainer->options->batch; i++)
		smalti_append(items, sizeof(items), ", ",
			      "%" PRId64 " (epoch %" PRId64 ", t %" PRId64 ", loss %g)", samples[i].index,
			      samples[i].epoch, samples[i].draws.timestep, parts[i].mse + parts[i].vb);
	return smalti_fail(
	    error, SMALTI_ECORRUPT,
	    "step %" PRId64
	    ": the loss is %g and the gradient's norm %g, which is not finite, %s: the weights "
	    "are those before it; lower the learning rate, or look at the items: %s",
	    trainer->state.steps + 1, result->loss, result->norm, cause, items);
}
