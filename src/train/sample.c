/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/noised_latents.h"
#include "ranks/ranks.h"
#include "train/order.h"
#include "train/trainer.h"

#include <math.h>

/* Returns the replica whose lanes sample i of a batch is in. */
static int replica_of(const struct smalti_trainer *trainer, int64_t i)
{
	const struct smalti_train_options *o = trainer->options;
	return smalti_step_replica(&trainer->strategy, smalti_min(o->lanes, o->batch), i);
}

/* Returns where a replica's latents are made, and its loss. */
static int place_of(const struct smalti_trainer *trainer, int replica)
{
	return smalti_strategy_place(&trainer->strategy, replica, 0, 0, 0);
}

bool smalti_sample_is_own(const struct smalti_trainer *trainer, int64_t i)
{
	return smalti_ranks_of(place_of(trainer, replica_of(trainer, i))) == smalti_ranks_own();
}

struct smalti_sample_work smalti_sample_work_of(const struct smalti_trainer *trainer,
						const struct smalti_training_sample *samples, int64_t i)
{
	const struct smalti_train_options *o = trainer->options;
	const struct smalti_training_sample *sample = &samples[i];
	return (struct smalti_sample_work){.sample = sample,
					   .timestep = sample->draws.timestep,
					   .seed = sample->seed,
					   .skip = SMALTI_SAMPLE_DRAWS,
					   .draws = !o->data.mean_latents,
					   .replica = replica_of(trainer, i),
					   .weight = smalti_min_snr(sample->draws.timestep, o->min_snr)};
}

static struct smalti_tile *floats(struct smalti_task_group *task_group, int64_t count)
{
	return smalti_tile_new(task_group, 1, count * (int64_t)sizeof(float));
}

/* Inserts the caption in f32. */
static struct smalti_tile *insert_caption(const struct smalti_trainer *trainer,
					  struct smalti_task_group *task_group,
					  const struct smalti_training_sample *sample)
{
	const int64_t count = sample->tokens * trainer->config.caption_channels;
	struct smalti_tile *stored = smalti_tile_upload_there(
	    task_group, 1, count * smalti_dtype_bytes(trainer->features), sample->caption);
	struct smalti_tile *text = floats(task_group, count);
	smalti_insert(convert, task_group, (.x = stored, .y = text), .count = count,
		      .from = trainer->features, .to = SMALTI_F32);
	smalti_tile_release(stored);
	return text;
}

static struct smalti_noised_latents insert_latents(const struct smalti_trainer *trainer,
						   struct smalti_task_group *task_group,
						   const struct smalti_sample_work *work)
{
	const struct smalti_training_sample *sample = work->sample;
	const struct training_sample_arguments arguments = {.count = trainer->config.in_channels *
								     sample->height * sample->width,
							    .t = work->timestep,
							    .skip = work->skip,
							    .seed = work->seed,
							    .dtype = trainer->features,
							    .draws = work->draws,
							    .factor = trainer->scaling_factor};
	struct smalti_tile *moments = smalti_tile_upload_there(
	    task_group, 1, 2 * arguments.count * smalti_dtype_bytes(trainer->features), sample->moments);
	const struct smalti_noised_latents latents =
	    smalti_noised_latents_insert(task_group, moments, &arguments);
	smalti_tile_release(moments);
	return latents;
}

/* Returns the gradient of the output; NULL without gradients. */
static struct smalti_tile *insert_loss(const struct smalti_trainer *trainer,
				       struct smalti_task_group *task_group,
				       const struct smalti_sample_work *work,
				       const struct smalti_noised_latents *latents,
				       struct smalti_tile *output)
{
	const bool has_variance = trainer->config.out_channels != trainer->config.in_channels;
	const struct diffusion_loss_arguments arguments = {
	    .has_variance = has_variance,
	    .learns_variance = has_variance && !trainer->options->fixed_variance,
	    .weight = work->weight,
	    .scale = work->scale};
	struct smalti_tile *gradient =
	    work->gradients ? floats(task_group, (has_variance ? 2 : 1) * latents->count) : NULL;
	smalti_task_group_place(task_group, place_of(trainer, work->replica));
	smalti_denoising_loss_insert(task_group, latents, output, gradient, &arguments, work->parts);
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
	return gradient;
}

static int64_t tokens_at(const struct smalti_tokens *tokens, int rank, int shard)
{
	int64_t count = 0;
	for (int64_t i = 0; i < tokens->partition.bands; i++)
		if (tokens->band[i].rank == rank && tokens->band[i].shard == shard)
			count += smalti_partition_rows(&tokens->partition, i);
	return count;
}

/* Cuts a sample's tokens, of which each part needs some. */
static int cut(const struct smalti_trainer *trainer, const struct smalti_training_sample *sample,
	       struct smalti_tokens *tokens, struct smalti_error *error)
{
	const int64_t patch = trainer->config.patch_size, columns = sample->width / patch;
	const int64_t count = sample->height / patch * columns;
	const int shards = trainer->strategy.parts[SMALTI_AXIS_SHARD];
	const int parts = smalti_trained_parts(&trainer->strategy);
	if (smalti_tokens_cut(tokens, &trainer->strategy, count, columns,
			      smalti_training_tile_tokens(trainer->options, count), error) < 0)
		return -1;
	for (int part = 0; part < parts; part++)
		if (tokens_at(tokens, part / shards, part % shards) == 0) {
			smalti_tokens_free(tokens);
			return smalti_fail(
			    error, SMALTI_EINVAL,
			    "item %" PRId64 " has %" PRId64
			    " tokens, of which rank %d of the strategy's %d gets none: cut tokens "
			    "into fewer ranks, or give it a larger share",
			    sample->index, count, part, parts);
		}
	return 0;
}

/* The transformer's input of a sample. */
struct entry {
	struct smalti_tokens tokens;
	struct smalti_noised_latents latents;
	struct smalti_tile *caption; /* NULL: the null caption */
	struct smalti_trained_sample input;
};

static int insert_entry(const struct smalti_trainer *trainer, struct smalti_task_group *task_group,
			const struct smalti_sample_work *work, struct entry *entry,
			struct smalti_error *error)
{
	const struct smalti_training_sample *sample = work->sample;
	if (cut(trainer, sample, &entry->tokens, error) < 0)
		return -1;
	smalti_task_group_place(task_group, place_of(trainer, work->replica));
	entry->latents = insert_latents(trainer, task_group, work);
	entry->caption = sample->dropped ? NULL : insert_caption(trainer, task_group, sample);
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
	entry->input = (struct smalti_trained_sample){
	    .x = entry->latents.xt,
	    .height = sample->height,
	    .width = sample->width,
	    .tokens = &entry->tokens,
	    .replica = work->replica,
	    .text = entry->caption ? entry->caption : trainer->null_caption,
	    .text_tokens = smalti_sample_text_tokens(trainer, sample),
	    .timestep = work->timestep,
	    .sides = {(float)sample->original_height, (float)sample->original_width},
	    .ratio = (float)sample->ratio,
	    .recomputed = work->gradients ? trainer->plan.recomputed : trainer->config.layers,
	    .bounded = trainer->plan.bounded};
	return 0;
}

static void release_entry(struct entry *entry)
{
	smalti_tile_release(entry->caption);
	smalti_noised_latents_release(&entry->latents);
	smalti_tokens_free(&entry->tokens);
}

int smalti_sample_insert(const struct smalti_trainer *trainer, struct smalti_trained *graph,
			 struct smalti_task_group *task_group, const struct smalti_sample_work *work,
			 struct smalti_error *error)
{
	struct entry entry;
	if (insert_entry(trainer, task_group, work, &entry, error) < 0)
		return -1;
	struct smalti_tile *output = NULL;
	struct smalti_trained_pass *pass = smalti_trained_forward(graph, task_group, &entry.input, &output);
	struct smalti_tile *gradient =
	    pass ? insert_loss(trainer, task_group, work, &entry.latents, output) : NULL;
	smalti_tile_release(output);
	if (gradient)
		smalti_trained_backward(pass, gradient, work->gradients, work->add);
	else
		smalti_trained_drop(pass);
	smalti_tile_release(gradient);
	release_entry(&entry);
	return smalti_task_group_broken(task_group) ? smalti_task_group_status(task_group, error) : 0;
}

/* Returns the first probe that is not finite; NULL: all are finite. */
static const struct smalti_trained_probe *first_not_finite(const struct smalti_trained_probes *probes)
{
	for (int64_t i = 0; i < probes->count; i++)
		if (!isfinite(probes->list[i].square_sum))
			return &probes->list[i];
	return NULL;
}

int smalti_sample_probe(const struct smalti_trainer *trainer, const struct smalti_sample_work *work,
			char name[SMALTI_PROBE_NAME], struct smalti_error *error)
{
	struct smalti_trained_probes probes = {0};
	struct entry entry;
	name[0] = '\0';
	struct smalti_task_group *task_group = smalti_task_group_new(trainer->session, "probe", 0, error);
	if (!task_group)
		return -1;
	int status = insert_entry(trainer, task_group, work, &entry, error);
	if (status == 0) {
		status = smalti_trained_probe_all(trainer->graph, task_group, &entry.input, &probes, error);
		release_entry(&entry);
	}
	smalti_task_group_wait(task_group);
	if (status == 0)
		status = smalti_task_group_status(task_group, error);
	const struct smalti_trained_probe *found = status == 0 ? first_not_finite(&probes) : NULL;
	if (found)
		snprintf(name, SMALTI_PROBE_NAME, "%s", found->name);
	smalti_task_group_free(task_group);
	free(probes.list);
	return status;
}
