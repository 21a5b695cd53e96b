/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/train_pass.h"

static const double final_epsilon = 1e-6; /* fixed, independent of norm_eps (docs/reference.md 3.7) */

static struct patchify_arguments patches_of(const struct smalti_dit_pass *pass, int64_t channels,
					    int64_t band, bool channels_last)
{
	return (struct patchify_arguments){.channels = channels,
					   .height = pass->sample.height,
					   .width = pass->sample.width,
					   .patch = pass->train->config.patch_size,
					   .columns = pass->sample.width / pass->train->config.patch_size,
					   .first = smalti_train_bands(pass)->first[band],
					   .rows = smalti_train_rows(pass, band),
					   .scale = 1.0f,
					   .channels_last = channels_last};
}

static void to_tokens(const struct smalti_dit_pass *pass, struct smalti_tile *planes, int64_t channels,
		      int64_t band, bool channels_last, struct smalti_tile *tokens)
{
	const struct patchify_arguments a = patches_of(pass, channels, band, channels_last);
	const struct patchify_buffers buffers = {.planes = planes, .tokens = tokens};
	smalti_insert_patchify(pass->task_group, &buffers, &a);
}

static void to_planes(const struct smalti_dit_pass *pass, struct smalti_tile *tokens, int64_t channels,
		      int64_t band, bool channels_last, struct smalti_tile *planes)
{
	const struct patchify_arguments a = patches_of(pass, channels, band, channels_last);
	const struct unpatchify_buffers buffers = {.tokens = tokens, .planes = planes};
	smalti_insert_unpatchify(pass->task_group, &buffers, &a);
}

static struct smalti_tile *positions_of(const struct smalti_dit_pass *pass)
{
	const struct smalti_transformer_config *c = &pass->train->config;
	const int64_t columns = pass->sample.width / c->patch_size,
		      rows = pass->sample.height / c->patch_size;
	struct smalti_tile *table = smalti_train_tile(pass, columns + rows, c->width / 2);
	smalti_insert(positions, pass->task_group, (.table = table), .columns = columns, .rows = rows,
		      .dim = c->width, .base = c->sample_size / c->patch_size,
		      .interpolation_scale = c->interpolation_scale);
	return table;
}

static struct smalti_train_rows patches_at(const struct smalti_dit_pass *pass, int64_t band)
{
	return (struct smalti_train_rows){smalti_grid_tile(&pass->patches, band),
					  smalti_train_rows(pass, band), SMALTI_F32};
}

void smalti_train_embed(struct smalti_dit_pass *pass)
{
	const struct smalti_transformer_config *c = &pass->train->config;
	struct smalti_tile *positions = positions_of(pass);
	for (int64_t b = 0; b < smalti_train_bands(pass)->bands; b++) {
		smalti_train_go_home(pass, b);
		smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, smalti_train_rows(pass, b), "patches");
		to_tokens(pass, pass->sample.x, c->in_channels, b, false,
			  smalti_grid_tile(&pass->patches, b));
		struct smalti_tile *z =
		    smalti_train_linear(pass, &pass->train->patch, patches_at(pass, b), SMALTI_F32);
		smalti_insert(add_positions, pass->task_group, (.positions = positions, .y = z),
			      .rows = smalti_train_rows(pass, b), .dim = c->width,
			      .first = smalti_train_bands(pass)->first[b],
			      .columns = pass->sample.width / c->patch_size);
		pass->z[0].tile[b] = z;
		smalti_fuse_end(pass->task_group);
	}
	smalti_tile_release(positions);
}

void smalti_train_embed_backward(struct smalti_dit_pass *pass, const struct smalti_grid *gz,
				 struct smalti_tile *gx)
{
	const struct smalti_transformer_config *c = &pass->train->config;
	const int64_t columns = smalti_train_patch_columns(pass, c->in_channels);
	if (gx)
		smalti_insert(clear, pass->task_group, (.y = gx),
			      .bytes = c->in_channels * pass->sample.height * pass->sample.width *
				       (int64_t)sizeof(float));
	for (int64_t b = 0; b < smalti_train_bands(pass)->bands; b++) {
		const int64_t rows = smalti_train_rows(pass, b);
		smalti_train_go_home(pass, b);
		smalti_train_linear_weight(pass, &pass->train->patch, smalti_grid_tile(gz, b),
					   patches_at(pass, b), smalti_train_adds(pass, b));
		if (!gx)
			continue;
		struct smalti_tile *tokens = smalti_train_tile(pass, rows, columns);
		smalti_train_linear_input(pass, &pass->train->patch, smalti_grid_tile(gz, b), rows, false,
					  tokens);
		to_planes(pass, tokens, c->in_channels, b, false, gx);
		smalti_tile_release(tokens);
	}
}

struct smalti_tile *smalti_train_project(struct smalti_dit_pass *pass)
{
	const struct smalti_transformer_config *c = &pass->train->config;
	const struct smalti_grid *z = &pass->z[c->layers];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_grid v = {z->partition, smalti_calloc(z->partition->bands, sizeof(*v.tile), &error)};
	if (!v.tile) {
		smalti_task_group_break(pass->task_group, &error);
		return NULL;
	}
	for (int part = 0; part < pass->parts; part++) {
		smalti_train_go(pass, part);
		pass->here->final = smalti_train_modulation(pass, pass->train->final_table, 2, pass->e, 1);
	}
	for (int64_t b = 0; b < z->partition->bands; b++) {
		smalti_train_go_home(pass, b);
		smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, smalti_train_rows(pass, b),
					"final layer");
		const struct smalti_train_rows u =
		    smalti_train_normalized(pass, smalti_train_rows(pass, b), smalti_grid_tile(z, b),
					    pass->here->final, 0, final_epsilon);
		v.tile[b] = smalti_train_linear(pass, &pass->train->out, u, SMALTI_F32);
		smalti_tile_release(u.tile);
		smalti_fuse_end(pass->task_group);
	}
	smalti_train_go(pass, 0);
	struct smalti_tile *out =
	    smalti_train_cleared(pass, c->out_channels, pass->sample.height * pass->sample.width);
	for (int64_t b = 0; b < z->partition->bands; b++)
		to_planes(pass, smalti_grid_tile(&v, b), c->out_channels, b, true, out);
	smalti_grid_release(&v);
	return out;
}

/* Computes a band's gradient behind the last block, and adds to that of the last layer's modulation. */
static void project_band_back(struct smalti_dit_pass *pass, int64_t band, struct smalti_tile *gout,
			      const struct smalti_grid *gz, struct smalti_tile *gtable)
{
	const struct smalti_dit_train *train = pass->train;
	const struct smalti_transformer_config *c = &train->config;
	const int64_t rows = smalti_train_rows(pass, band);
	struct smalti_tile *z = smalti_grid_tile(&pass->z[c->layers], band);
	smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, rows, "final layer's gradients");
	struct smalti_tile *gv = smalti_train_tile(pass, rows, train->out.out);
	struct smalti_tile *gu = smalti_train_tile(pass, rows, c->width);
	const struct smalti_train_rows u =
	    smalti_train_normalized(pass, rows, z, pass->here->final, 0, final_epsilon);
	to_tokens(pass, gout, c->out_channels, band, true, gv);
	smalti_train_linear_weight(pass, &train->out, gv, u, smalti_train_adds(pass, band));
	smalti_train_linear_input(pass, &train->out, gv, rows, false, gu);
	smalti_insert(ln_modulate_backward, pass->task_group,
		      (.x = z, .modulation = pass->here->final, .gy = gu, .gx = smalti_grid_tile(gz, band),
		       .gmodulation = gtable),
		      .rows = rows, .dim = c->width, .shift_row = 0, .scale_row = 1,
		      .epsilon = (float)final_epsilon, .add = false);
	smalti_tile_release(u.tile);
	smalti_tile_release(gv);
	smalti_tile_release(gu);
	smalti_fuse_end(pass->task_group);
}

void smalti_train_project_backward(struct smalti_dit_pass *pass, struct smalti_tile *gout,
				   const struct smalti_grid *gz)
{
	const int64_t width = pass->train->config.width, table = pass->train->final_table;
	for (int part = 0; part < pass->parts; part++) {
		smalti_train_go(pass, part);
		struct smalti_tile *gtable = smalti_train_cleared(pass, 2, width);
		for (int64_t b = pass->here->begin; b < pass->here->end; b++)
			project_band_back(pass, b, gout, gz, gtable);
		smalti_train_add(pass, 2 * width, gtable, pass->add, pass->here->gradients[table]);
		smalti_insert(column_sums, pass->task_group, (.x = gtable, .y = pass->here->ge), .rows = 2,
			      .dim = width, .add = false);
		smalti_tile_release(gtable);
	}
}
