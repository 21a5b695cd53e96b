/* SPDX-License-Identifier: Apache-2.0 */
#include "simulator/needs.h"
#include "graphs/weights.h"
#include "jobs/model.h"

/* Bytes that libraries of such a program hold: the published memory of one A100 at 1024 pixels
 * (docs/studies/memory.csv), less model and activations. */
static const double libraries = 1.28e9;

/* Returns what a program whose exchanges block holds besides: text encoder and decoder, as it frees nothing,
 * and the keys for the next pass beside those that come meanwhile. */
static double held_besides(const struct smalti_model *model, const struct smalti_place_load *load)
{
	const bool keeps_others = load->keys > 0 && load->buffers > load->keys;
	return libraries + (double)smalti_weights_file_bytes(model->text.model->weights) +
	       (double)smalti_weights_file_bytes(model->vae->weights) + (keeps_others ? load->buffers : 0);
}

int smalti_needs(const struct smalti_model *model, const struct smalti_plan *plan, bool blocking,
		 struct smalti_simulation *simulation, struct smalti_error *error)
{
	const int places = smalti_plan_place_count(plan);
	for (int memory = 1; memory < simulation->memory_count; memory++) {
		struct smalti_place_load load;
		if (smalti_plan_load(plan, places > 1 ? memory : 0, &load, error) < 0)
			return -1;
		simulation->memories[memory].needed =
		    (int64_t)(load.weights + load.activations + load.buffers +
			      (blocking ? held_besides(model, &load) : 0));
	}
	return 0;
}
