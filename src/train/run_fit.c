/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "jobs/model.h"
#include "train/run_parts.h"

#include <math.h>

int smalti_training_run_check_fit(const struct smalti_training_run *run,
				  const struct smalti_training_data *data, const char *directory,
				  struct smalti_error *error)
{
	const struct smalti_shard_schema *schema = smalti_training_data_schema(data);
	if (run->config.patch_size != 2 || run->config.caption_channels == 0)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "the transformer has patches of %" PRId64
				   " and %s caption projection: training "
				   "expects patches of 2 and one",
				   run->config.patch_size, run->config.caption_channels ? "a" : "no");
	if (schema->latent_channels != run->config.in_channels)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: its latents have %" PRId64 " channels, the transformer takes %" PRId64
				   ": extract features with the VAE that belongs to it",
				   directory, schema->latent_channels, run->config.in_channels);
	if (schema->text_width != run->config.caption_channels)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: its captions' features are %" PRId64
				   " wide, the transformer takes %" PRId64
				   ": extract features with the text encoder that belongs to it",
				   directory, schema->text_width, run->config.caption_channels);
	return 0;
}

/* Checks that features have the VAE's scaling factor, which a pipeline scales latents by. */
int smalti_training_run_check_scaling(const struct smalti_training_run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	const double factor = smalti_training_data_schema(run->data)->scaling_factor;
	struct smalti_vae_config vae;
	if (o->initial || o->model.transformer)
		return 0;
	const char *whole = o->model.directory ? o->model.directory : smalti_embedded_model(error);
	SCOPED(free) char *path = whole ? smalti_format(error, "%s/vae/config.json", whole) : NULL;
	const int found = path ? smalti_find_file(path, error) : -1;
	if (found <= 0)
		return found;
	if (smalti_vae_config_read(path, &vae, error) < 0)
		return -1;
	if (fabs(vae.scaling_factor - factor) <= 1e-9 * fabs(factor))
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "%s: the features have the scaling factor %.9g, %s has %.9g: extract features with the VAE "
	    "that belongs to the transformer",
	    o->data.directories[0], factor, path, vae.scaling_factor);
}

/* Says what "auto" has chosen. What limits it is the devices' memory, where there are some. */
static void tell_plan(struct smalti_training_run *run, const struct smalti_step_plan *plan)
{
	const int64_t room = plan->device_room, main = run->session->memory;
	const bool devices = room < INT64_MAX;
	char note[200];
	snprintf(note, sizeof(note),
		 "steps take %" PRId64 " MB%s of %" PRId64 " at most: %" PRId64 " of %" PRId64
		 " blocks computed again, %" PRId64 " samples at a time%s",
		 ((devices ? plan->device_tiles : plan->bytes) >> 20) + 1,
		 devices ? " of a device's memory" : "", smalti_min(room, main) >> 20, plan->recomputed,
		 run->config.layers, plan->micro_batch,
		 plan->device_tiles > room ? "; the rest moves to main memory and back" : "");
	smalti_training_run_tell(run, note);
}

int smalti_training_run_check_memory(struct smalti_training_run *run, struct smalti_error *error)
{
	const struct smalti_shard_extent extent = smalti_training_data_extent(run->data);
	struct smalti_step_shape shape = {0};
	struct smalti_step_plan plan = {0};
	if (extent.latent_height < run->config.patch_size || extent.latent_width < run->config.patch_size)
		return 0; /* nothing to train on; the first step reports it */
	smalti_step_shape_widen(&shape, extent.latent_height, extent.latent_width, extent.tokens);
	if (smalti_step_plan_choose(&run->trainer, &shape, &plan, error) < 0)
		return -1;
	if (run->options->recomputation == SMALTI_RECOMPUTE_AUTO)
		tell_plan(run, &plan);
	return 0;
}
