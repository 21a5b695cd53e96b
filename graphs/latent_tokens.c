/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/latent_tokens.h"
#include "codelets/codelets.h"

struct patchify_arguments smalti_latent_band(const struct smalti_latent_form *form, int64_t band,
					     double scale)
{
	const struct smalti_partition *partition = &form->tokens->partition;
	const struct smalti_token_area area = smalti_tokens_area(form->tokens, band);
	return (struct patchify_arguments){.channels = form->channels,
					   .height = form->height,
					   .width = form->width,
					   .patch = form->patch,
					   .left = area.left,
					   .columns = area.columns,
					   .first = partition->first[band] - area.first,
					   .rows = smalti_partition_rows(partition, band),
					   .scale = (float)scale,
					   .channels_last = form->channels_last};
}

struct smalti_grid smalti_latents_cut(struct smalti_task_group *task_group,
				      const struct smalti_latent_form *form, struct smalti_tile *planes,
				      double scale)
{
	const struct smalti_partition *partition = &form->tokens->partition;
	const int64_t bytes = form->channels * form->patch * form->patch * (int64_t)sizeof(float);
	const struct smalti_grid y = smalti_grid_new(task_group, partition, 1, bytes);
	for (int64_t b = 0; b < partition->bands; b++) {
		const struct patchify_buffers buffers = {.planes = planes, .tokens = smalti_grid_tile(&y, b)};
		const struct patchify_arguments arguments = smalti_latent_band(form, b, scale);
		smalti_tile_set_transfer_kind(buffers.tokens, SMALTI_TRANSFER_STREAM);
		smalti_insert_patchify(task_group, &buffers, &arguments);
	}
	return y;
}

struct smalti_tile *smalti_latents_join(struct smalti_task_group *task_group,
					const struct smalti_latent_form *form,
					const struct smalti_grid *tokens)
{
	const int64_t count = form->channels * form->height * form->width;
	struct smalti_tile *planes = smalti_tile_new(task_group, count, sizeof(float));
	smalti_insert(clear, task_group, (.y = planes), .bytes = count * (int64_t)sizeof(float));
	for (int64_t b = 0; b < tokens->partition->bands; b++) {
		const struct unpatchify_buffers buffers = {.tokens = smalti_grid_tile(tokens, b),
							   .planes = planes};
		const struct patchify_arguments arguments = smalti_latent_band(form, b, 1.0);
		smalti_insert_unpatchify(task_group, &buffers, &arguments);
	}
	return planes;
}
