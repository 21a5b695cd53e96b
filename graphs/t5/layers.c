/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/t5/parts.h"

/* Computes the sizes of all shards of `count` things with `each` columns. */
static void shard_columns(const struct smalti_t5 *t5, int64_t count, int64_t each, int64_t *columns)
{
	for (int shard = 0; shard < t5->shards; shard++)
		columns[shard] = smalti_t5_shard_size(t5, count, shard) * each;
}

/* Returns the part of a matrix that a shard reads. */
static struct smalti_weight *part_of(const struct smalti_t5_encoding *e,
				     const struct smalti_t5_matrix *matrix, int shard)
{
	return e->placed ? matrix->part[shard] : matrix->weight;
}

static struct smalti_tile *rows_of(const struct smalti_t5_encoding *e, const struct smalti_t5_matrix *matrix,
				   int shard)
{
	return smalti_weight_tile(part_of(e, matrix, shard));
}

/* Returns the first of the matrix's `count` things that the shard's place holds. */
static int64_t held_from(const struct smalti_t5_encoding *e, int64_t count, int shard)
{
	return e->placed ? smalti_t5_shard_begin(e->t5, count, shard) : 0;
}

static void release_shards(const struct smalti_t5_encoding *e, struct smalti_tile **tiles)
{
	for (int shard = 0; shard < e->t5->shards; shard++)
		smalti_tile_release(tiles[shard]);
}

static struct smalti_tile *rmsnorm(const struct smalti_t5_encoding *e, const struct smalti_t5_band *band,
				   struct smalti_weight *weight, int64_t first_row, int64_t rows,
				   enum smalti_dtype dtype)
{
	const struct smalti_t5_config *c = &e->t5->config;
	struct smalti_tile *y = smalti_tile_new(e->task_group, rows, c->width * smalti_dtype_bytes(dtype));
	struct rmsnorm_buffers buffers = {.weight = smalti_weight_tile(weight), .y = y};
	struct rmsnorm_arguments arguments = {.rows = rows,
					      .dim = c->width,
					      .first_row = first_row,
					      .epsilon = (float)c->norm_eps,
					      .dtype = dtype};
	shard_columns(e->t5, c->width, 1, arguments.columns);
	for (int shard = 0; shard < e->t5->shards; shard++)
		buffers.x[shard] = band->x[shard];
	smalti_t5_go_to(e, 0);
	smalti_insert_rmsnorm(e->task_group, &buffers, &arguments);
	return y;
}

static struct smalti_tile *attend_heads(const struct smalti_t5_encoding *e, const struct smalti_t5_band *band,
					const struct smalti_t5_block *b, struct smalti_tile *x, int shard)
{
	const struct smalti_t5 *t5 = e->t5;
	const struct smalti_t5_config *c = &t5->config;
	const int64_t heads = smalti_t5_shard_size(t5, c->heads, shard);
	struct smalti_tile *y = smalti_t5_new_shard(e, band, heads * c->head_dim, t5->compute);
	smalti_t5_go_to(e, shard);
	smalti_insert(attend_heads, e->task_group,
		      (.x = x, .q = rows_of(e, &b->matrix[SMALTI_T5_Q], shard),
		       .k = rows_of(e, &b->matrix[SMALTI_T5_K], shard),
		       .v = rows_of(e, &b->matrix[SMALTI_T5_V], shard), .bias = t5->bias,
		       .starts = band->starts, .y = y),
		      .tokens = band->tokens, .in = c->width, .held = held_from(e, c->heads, shard),
		      .first_head = smalti_t5_shard_begin(t5, c->heads, shard), .heads = heads,
		      .head_dim = c->head_dim, .captions = band->end - band->first, .pairs = band->pairs,
		      .padding = band->padding, .bias_reach = t5->reach, .compute = t5->compute,
		      .dtype = {b->matrix[SMALTI_T5_Q].dtype, b->matrix[SMALTI_T5_K].dtype,
				b->matrix[SMALTI_T5_V].dtype},
		      .rounds_x = t5->rounds_x);
	return y;
}

static struct smalti_tile *geglu(const struct smalti_t5_encoding *e, const struct smalti_t5_band *band,
				 const struct smalti_t5_block *b, struct smalti_tile *x, int shard)
{
	const struct smalti_t5 *t5 = e->t5;
	const struct smalti_t5_config *c = &t5->config;
	const int64_t columns = smalti_t5_shard_size(t5, c->ff_width, shard);
	struct smalti_tile *y = smalti_t5_new_shard(e, band, columns, t5->wide);
	smalti_t5_go_to(e, shard);
	smalti_insert(geglu, e->task_group,
		      (.x = x, .gate = rows_of(e, &b->matrix[SMALTI_T5_WI_0], shard),
		       .weight = rows_of(e, &b->matrix[SMALTI_T5_WI_1], shard), .y = y),
		      .rows = band->tokens, .in = c->width,
		      .first =
			  smalti_t5_shard_begin(t5, c->ff_width, shard) - held_from(e, c->ff_width, shard),
		      .columns = columns, .compute = t5->compute, .result = t5->wide,
		      .dtype = {b->matrix[SMALTI_T5_WI_0].dtype, b->matrix[SMALTI_T5_WI_1].dtype},
		      .rounds_x = t5->rounds_x);
	return y;
}

/* Adds the output projection of the shards y, `count` things of `each` columns in the dtype `compute`, to x;
 * releases y. */
static void add_projection(const struct smalti_t5_encoding *e, const struct smalti_t5_band *band,
			   const struct smalti_t5_matrix *matrix, enum smalti_dtype compute,
			   struct smalti_tile **y, int64_t count, int64_t each)
{
	const struct smalti_t5 *t5 = e->t5;
	const int64_t width = t5->config.width;
	struct sum_shards_buffers buffers = {.weight = NULL};
	struct sum_shards_arguments arguments = {
	    .rows = band->tokens, .in = count * each, .compute = compute, .dtype = matrix->dtype};
	shard_columns(t5, count, each, arguments.x_columns);
	for (int shard = 0; shard < t5->shards; shard++)
		buffers.x[shard] = y[shard];
	for (int shard = 0; shard < t5->shards; shard++) {
		buffers.weight = rows_of(e, matrix, shard);
		buffers.y = band->x[shard];
		arguments.first = smalti_t5_shard_begin(t5, width, shard) - held_from(e, width, shard);
		arguments.columns = smalti_t5_shard_size(t5, width, shard);
		smalti_t5_go_to(e, shard);
		smalti_insert_sum_shards(e->task_group, &buffers, &arguments);
	}
	release_shards(e, y);
}

/* Inserts x += O(attention(RMS(x))), scores unscaled and with the position bias (2.2, steps 1 to 4). */
static void self_attention(const struct smalti_t5_encoding *e, const struct smalti_t5_band *band,
			   const struct smalti_t5_block *b)
{
	const struct smalti_t5_config *c = &e->t5->config;
	struct smalti_tile *y[SMALTI_MANY];
	struct smalti_tile *h = rmsnorm(e, band, b->norm1, 0, band->tokens, e->t5->compute);
	for (int shard = 0; shard < e->t5->shards; shard++)
		y[shard] = attend_heads(e, band, b, h, shard);
	smalti_tile_release(h);
	add_projection(e, band, &b->matrix[SMALTI_T5_O], e->t5->compute, y, c->heads, c->head_dim);
}

/* Inserts x += Wo(gelu(W0·n) ⊙ (W1·n)), n = RMS(x) (2.2, step 5). */
static void feed_forward(const struct smalti_t5_encoding *e, const struct smalti_t5_band *band,
			 const struct smalti_t5_block *b)
{
	struct smalti_tile *y[SMALTI_MANY];
	struct smalti_tile *h = rmsnorm(e, band, b->norm2, 0, band->tokens, e->t5->compute);
	for (int shard = 0; shard < e->t5->shards; shard++)
		y[shard] = geglu(e, band, b, h, shard);
	smalti_tile_release(h);
	add_projection(e, band, &b->matrix[SMALTI_T5_WO], e->t5->wide, y, e->t5->config.ff_width, 1);
}

/* Begins operations that may become one task, for so many bands of a layer. */
static void fuse(const struct smalti_t5_encoding *e, enum smalti_grain grain, const char *name, int64_t bands)
{
	const struct smalti_fusion fusion = {name, grain, e->flops * (double)bands, SMALTI_ANYWHERE};
	smalti_fuse_begin(e->task_group, &fusion);
}

static void run_layer(const struct smalti_t5_encoding *e, const struct smalti_t5_block *b)
{
	const bool single = e->bands == 1;
	if (single)
		fuse(e, SMALTI_GRAIN_BLOCK, "text layer", 1);
	for (int64_t j = 0; j < e->bands; j++) {
		fuse(e, SMALTI_GRAIN_HALF_BLOCK, "text attention", 1);
		self_attention(e, &e->band[j], b);
		smalti_fuse_end(e->task_group);
	}
	for (int64_t j = 0; j < e->bands; j++) {
		fuse(e, SMALTI_GRAIN_HALF_BLOCK, "text feed-forward", 1);
		feed_forward(e, &e->band[j], b);
		smalti_fuse_end(e->task_group);
	}
	if (single)
		smalti_fuse_end(e->task_group);
}

/* Reads the layer's weights ahead or, with `drops`, gives them back, at the places of their readers. */
static void stream_layer(const struct smalti_t5_encoding *e, const struct smalti_t5_block *b, bool drops)
{
	const int parts = e->placed ? e->t5->shards : 1;
	for (int i = 0; i < SMALTI_T5_MATRICES * parts; i++) {
		struct smalti_weight *weight = part_of(e, &b->matrix[i / parts], i % parts);
		smalti_t5_go_to(e, i % parts);
		if (drops)
			smalti_weight_drop(e->task_group, weight);
		else
			smalti_weight_read_ahead(e->task_group, weight, e->band[0].x[i % parts]);
	}
}

/* Inserts layer by layer, so that all captions share one reading of a layer's weights. */
void smalti_t5_run_layers(const struct smalti_t5_encoding *e)
{
	const struct smalti_t5 *t5 = e->t5;
	fuse(e, SMALTI_GRAIN_PASS, "text encoder", e->bands * t5->config.layers);
	for (int64_t i = 0; i < t5->config.layers && !smalti_task_group_broken(e->task_group); i++) {
		const struct smalti_t5_block *b = &t5->blocks[i];
		smalti_task_group_at(e->task_group, i, -1);
		smalti_task_group_bottom_level(e->task_group, SMALTI_MAX_BOTTOM_LEVEL -
								  i); /* the whole image waits for it */
		if (t5->streamed && i + 1 < t5->config.layers)
			stream_layer(e, b + 1, false);
		run_layer(e, b);
		if (t5->streamed)
			stream_layer(e, b, true);
	}
	smalti_fuse_end(e->task_group);
	smalti_task_group_at(e->task_group, -1, -1);
}

static void finish_band(const struct smalti_t5_encoding *e, struct smalti_t5_band *band,
			struct smalti_tile **hidden)
{
	int64_t row = 0;
	for (int64_t i = band->first; i < band->end; row += e->texts[i++].count) {
		hidden[i] = rmsnorm(e, band, e->t5->final_norm, row, e->texts[i].count, SMALTI_F32);
		if (hidden[i])
			hidden[i]->owner = SMALTI_ANYWHERE;
	}
	release_shards(e, band->x);
	smalti_tile_release(band->ids);
	smalti_tile_release(band->starts);
}

void smalti_t5_finish(const struct smalti_t5_encoding *e, struct smalti_tile **hidden)
{
	for (int64_t j = 0; j < e->bands; j++)
		finish_band(e, &e->band[j], hidden);
}
