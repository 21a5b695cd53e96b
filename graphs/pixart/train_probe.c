/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/train_pass.h"

#include <stdarg.h>

/* A probe of one forward, band by band. */
struct prober {
	struct smalti_dit_pass *pass;
	struct smalti_dit_probes *probes;
};

static void probe(const struct prober *p, struct smalti_tile *tile, int64_t count, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void probe(const struct prober *p, struct smalti_tile *tile, int64_t count, const char *format, ...)
{
	struct smalti_dit_probe *probe = &p->probes->list[p->probes->count++];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(probe->name, sizeof(probe->name), format, arguments);
	va_end(arguments);
	struct smalti_tile *sum = smalti_tile_new(p->pass->task_group, 1, sizeof(probe->square_sum));
	smalti_insert(square_sum, p->pass->task_group, (.x = tile, .sum = sum), .count = count, .factor = 1);
	smalti_insert(deliver, p->pass->task_group, (.x = sum),
		      .count = sizeof(probe->square_sum) / sizeof(float), .sink = smalti_copy_floats,
		      .user = &probe->square_sum);
	smalti_tile_release(sum);
}

/* The tiles that a block keeps in f32, in the order in which they are computed. */
static const struct {
	enum smalti_band_kept kept;
	const char *layer;
} in_block[] = {
    {SMALTI_KEPT_ATTENTION, "attn1"},
    {SMALTI_KEPT_AFTER_CROSS, "attn2"},
    {SMALTI_KEPT_HIDDEN, "ff.net.0.proj"},
    {SMALTI_KEPT_MLP, "ff.net.2"},
};

static void probe_block(const struct prober *p, int64_t block)
{
	for (size_t i = 0; i < COUNT_OF(in_block); i++)
		for (int64_t b = 0; b < smalti_train_bands(p->pass)->bands; b++)
			for (int shard = 0; shard < p->pass->shards; shard++) {
				const enum smalti_band_kept kept = in_block[i].kept;
				const int64_t columns =
				    kept == SMALTI_KEPT_HIDDEN
					? smalti_train_shard(p->pass, block, shard)->mlp.first.out
					: p->pass->train->config.width;
				struct smalti_tile *tile =
				    *smalti_train_kept(p->pass, &p->pass->kept[block], kept, b, shard);
				if (tile)
					probe(p, tile, smalti_train_rows(p->pass, b) * columns,
					      "transformer_blocks.%" PRId64 ".%s", block, in_block[i].layer);
			}
}

static void probe_all(const struct prober *p, struct smalti_tile *out)
{
	const struct smalti_transformer_config *c = &p->pass->train->config;
	const struct smalti_dit_sample *sample = &p->pass->sample;
	const int64_t pixels = sample->height * sample->width;
	probe(p, sample->x, c->in_channels * pixels, "the item's latents");
	probe(p, sample->text, sample->text_tokens * c->caption_channels, "the item's caption");
	probe(p, p->pass->g, 6 * c->width, "adaln_single");
	probe(p, p->pass->c, sample->text_tokens * c->width, "caption_projection");
	for (int64_t b = 0; b < smalti_train_bands(p->pass)->bands; b++)
		probe(p, smalti_grid_tile(&p->pass->z[0], b), smalti_train_rows(p->pass, b) * c->width,
		      "pos_embed");
	for (int64_t i = 0; i < c->layers; i++)
		probe_block(p, i);
	probe(p, out, c->out_channels * pixels, "proj_out");
}

int smalti_dit_train_probe(struct smalti_dit_train *train, struct smalti_task_group *task_group,
			   const struct smalti_dit_sample *sample, struct smalti_dit_probes *probes,
			   struct smalti_error *error)
{
	enum { AROUND = 5 }; /* those that belong to no band */
	const int64_t banded = 1 + (int64_t)COUNT_OF(in_block) * train->config.layers;
	struct smalti_dit_sample kept = *sample;
	struct smalti_tile *out = NULL;
	*probes = (struct smalti_dit_probes){
	    .list =
		smalti_calloc(AROUND + banded * sample->tokens->partition.bands * train->parameters->shards,
			      sizeof(*probes->list), error)};
	if (!probes->list)
		return -1;
	kept.recomputed = 0;
	smalti_dit_train_begin_step(train, task_group);
	struct smalti_dit_pass *pass = smalti_dit_train_forward(train, task_group, &kept, &out);
	if (pass && !smalti_task_group_broken(task_group))
		probe_all(&(struct prober){pass, probes}, out);
	smalti_dit_train_drop(pass);
	smalti_dit_train_end_step(train);
	smalti_tile_release(out);
	return 0;
}
