/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic.h"

#include "bench/fill.h"
#include "graphs/tensors.h"
#include "harness.h"

#include <math.h>
#include <stdio.h>

struct rule {
	const struct smalti_tensor_view *tensors;
	double amplitude;
	float values[SMALTI_SOURCE_ELEMENTS];
};

static const void *fill(void *user, int k, int64_t first, int64_t count, struct smalti_error *error)
{
	(void)error;
	struct rule *rule = user;
	const double offset = smalti_is_norm_weight(rule->tensors[k].name) ? 1 : 0;
	for (int64_t i = 0; i < count; i++)
		rule->values[i] =
		    (float)(offset + rule->amplitude * sin(0.37 * (double)(first + i) + 1.3 * k));
	return rule->values;
}

struct smalti_checkpoint *synthetic_checkpoint(struct smalti_inventory *inventory, double amplitude)
{
	static struct rule rule;
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *directory = test_scratch();
	char path[320];
	snprintf(path, sizeof(path), "%s/" SMALTI_STEM_T5 ".safetensors", directory);
	rule.tensors = inventory->tensors;
	rule.amplitude = amplitude;
	SUCCEEDS(smalti_safetensors_stream(path, inventory->tensors, inventory->count, fill, &rule, &error),
		 &error, "write");
	struct smalti_checkpoint *checkpoint =
	    smalti_checkpoint_open(directory, SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, "open");
	smalti_inventory_free(inventory);
	return checkpoint;
}

struct smalti_checkpoint *synthetic_transformer(const struct smalti_transformer_config *config,
						double amplitude)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory inventory;
	SUCCEEDS(smalti_component_tensors(&inventory, SMALTI_TRANSFORMER, config, SMALTI_F32, &error), &error,
		 "list");
	return synthetic_checkpoint(&inventory, amplitude);
}

struct smalti_checkpoint *synthetic_vae(const struct smalti_vae_config *config, double amplitude)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory inventory;
	SUCCEEDS(smalti_component_tensors(&inventory, SMALTI_VAE, config, SMALTI_F32, &error), &error,
		 "list");
	return synthetic_checkpoint(&inventory, amplitude);
}

struct smalti_checkpoint *synthetic_t5(const struct smalti_t5_config *config, double amplitude)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory inventory;
	SUCCEEDS(smalti_component_tensors(&inventory, SMALTI_TEXT_ENCODER, config, SMALTI_F32, &error),
		 &error, "list");
	return synthetic_checkpoint(&inventory, amplitude);
}
