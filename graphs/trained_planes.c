/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/trained_pass.h"

static struct patchify_arguments patches_of(const struct smalti_trained_pass *pass, int64_t channels,
					    int64_t band, bool channels_last)
{
	const struct smalti_partition *partition = &pass->sample.tokens->partition;
	const int64_t patch = pass->trained->denoiser->patch_size;
	return (struct patchify_arguments){.channels = channels,
					   .height = pass->sample.height,
					   .width = pass->sample.width,
					   .patch = patch,
					   .columns = pass->sample.width / patch,
					   .first = partition->first[band],
					   .rows = smalti_partition_rows(partition, band),
					   .scale = 1.0f,
					   .channels_last = channels_last};
}

static void to_tokens(const struct smalti_trained_pass *pass, struct smalti_tile *planes, int64_t channels,
		      int64_t band, bool channels_last, struct smalti_tile *tokens)
{
	const struct patchify_arguments a = patches_of(pass, channels, band, channels_last);
	const struct patchify_buffers buffers = {.planes = planes, .tokens = tokens};
	smalti_insert_patchify(pass->tape.task_group, &buffers, &a);
}

/* Inserts planes = the bands' tokens, or with `gradients` these tokens' gradients. */
static void to_planes(struct smalti_trained_pass *pass, const struct smalti_value *tokens, int64_t channels,
		      bool channels_last, bool gradients, struct smalti_tile *planes)
{
	struct smalti_task_group *task_group = pass->tape.task_group;
	smalti_tape_go(&pass->tape, 0);
	smalti_insert(clear, task_group, (.y = planes),
		      .bytes = channels * pass->sample.height * pass->sample.width * (int64_t)sizeof(float));
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++) {
		const struct patchify_arguments a = patches_of(pass, channels, b, channels_last);
		const struct unpatchify_buffers buffers = {
		    .tokens = gradients ? smalti_tape_gradient(&pass->tape, tokens[b]) : tokens[b].tile,
		    .planes = planes};
		smalti_insert_unpatchify(task_group, &buffers, &a);
	}
}

struct smalti_value smalti_trained_patches(struct smalti_trained_pass *pass, int64_t band)
{
	const struct smalti_denoiser *denoiser = pass->trained->denoiser;
	const int64_t columns = denoiser->in_channels * denoiser->patch_size * denoiser->patch_size;
	pass->patches[band] = smalti_value_new(
	    &pass->tape, smalti_partition_rows(&pass->sample.tokens->partition, band), columns, SMALTI_F32);
	smalti_value_set_constant(&pass->tape, pass->patches[band], !pass->sample.gx);
	to_tokens(pass, pass->sample.x, denoiser->in_channels, band, false, pass->patches[band].tile);
	return pass->patches[band];
}

struct smalti_tile *smalti_trained_planes(struct smalti_trained_pass *pass)
{
	const int64_t channels = pass->trained->denoiser->out_channels;
	const int64_t row = pass->sample.height * pass->sample.width * (int64_t)sizeof(float);
	struct smalti_tile *out = smalti_tile_new(pass->tape.task_group, channels, row);
	to_planes(pass, pass->v, channels, true, false, out);
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++) {
		struct smalti_value v = pass->v[b]; /* whose gradient comes later */
		smalti_value_release(&pass->tape, &v);
	}
	return out;
}

void smalti_trained_begin_gradients(struct smalti_trained_pass *pass, struct smalti_tile *gout)
{
	bool add;
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++) {
		smalti_trained_go_home(pass, b);
		to_tokens(pass, gout, pass->trained->denoiser->out_channels, b, true,
			  smalti_tape_into(&pass->tape, pass->v[b], &add));
	}
}

void smalti_trained_planes_gradient(struct smalti_trained_pass *pass)
{
	to_planes(pass, pass->patches, pass->trained->denoiser->in_channels, false, true, pass->sample.gx);
}
