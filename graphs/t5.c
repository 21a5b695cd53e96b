/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/t5.h"
#include "codelets/codelets.h"
#include "rt/task.h"

#include <math.h>

/* The workers share a caption by shards of the layers' outputs: heads of the attention, columns of the rest.
 * How many there are depends on the geometry alone, so that the order of all sums does. */
enum { SHARD_WEIGHTS = 1 << 18 }; /* wanted at least in a shard of the feed-forward's matrix */
enum { BAND_TOKENS = 512 };       /* of captions that are computed together, about */

/* A matrix as the file has it: [in] for each of the rows of `count` things that shards share. */
struct matrix {
	struct smalti_weight *weight;
	struct smalti_weight *part[SMALTI_MANY]; /* of each shard, once a strategy has places */
	int64_t count, each, in;
	enum smalti_dtype dtype;
};

enum { Q, K, V, O, WI_0, WI_1, WO, MATRICES };

struct block {
	struct smalti_weight *norm1, *norm2;
	struct matrix matrix[MATRICES];
};

struct t5 {
	struct smalti_text_encoder encoder; /* first: it is what others know */
	struct smalti_t5_config config;
	enum smalti_dtype compute;
	enum smalti_dtype wide; /* of the last product of a block: its operands may go beyond f16 */
	int shards;
	bool streamed;
	bool cut;                             /* the matrices have parts */
	struct smalti_task_group *task_group; /* of the weights */
	struct smalti_weight *relative_bias, *final_norm;
	struct matrix embedding;
	struct block *blocks;
	int64_t reach; /* of the positions in `bias`; grows */
	struct smalti_tile *bias;
};

static struct matrix load_matrix(struct t5 *t5, int64_t count, int64_t each, int64_t in, const char *prefix,
				 const char *name)
{
	struct matrix matrix = {.count = count, .each = each, .in = in};
	char full[128];
	snprintf(full, sizeof(full), "%s%s.weight", prefix, name);
	matrix.weight = smalti_weights_table(t5->encoder.weights, count * each, in, &matrix.dtype, full);
	return matrix;
}

static void load_block(struct t5 *t5, int64_t i)
{
	const struct smalti_t5_config *c = &t5->config;
	struct block *b = &t5->blocks[i];
	const struct {
		int layer;
		const char *name;
		int64_t count, each, in;
	} rows[MATRICES] = {
	    [Q] = {0, "SelfAttention.q", c->heads, c->head_dim, c->width},
	    [K] = {0, "SelfAttention.k", c->heads, c->head_dim, c->width},
	    [V] = {0, "SelfAttention.v", c->heads, c->head_dim, c->width},
	    [O] = {0, "SelfAttention.o", c->width, 1, c->inner},
	    [WI_0] = {1, "DenseReluDense.wi_0", c->ff_width, 1, c->width},
	    [WI_1] = {1, "DenseReluDense.wi_1", c->ff_width, 1, c->width},
	    [WO] = {1, "DenseReluDense.wo", c->width, 1, c->ff_width},
	};
	char prefix[2][64];
	for (int layer = 0; layer < 2; layer++)
		snprintf(prefix[layer], sizeof(prefix[layer]), "encoder.block.%lld.layer.%d.", (long long)i,
			 layer);
	b->norm1 = smalti_weights_vector(t5->encoder.weights, c->width, "%slayer_norm.weight", prefix[0]);
	b->norm2 = smalti_weights_vector(t5->encoder.weights, c->width, "%slayer_norm.weight", prefix[1]);
	for (int m = 0; m < MATRICES; m++)
		b->matrix[m] = load_matrix(t5, rows[m].count, rows[m].each, rows[m].in, prefix[rows[m].layer],
					   rows[m].name);
}

static void load(struct t5 *t5)
{
	const struct smalti_t5_config *c = &t5->config;
	t5->embedding = load_matrix(t5, c->vocabulary, 1, c->width, "", "shared");
	t5->relative_bias =
	    smalti_weights_rows(t5->encoder.weights, c->buckets, c->heads,
				"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
	for (int64_t i = 0; i < c->layers; i++)
		load_block(t5, i);
	t5->final_norm =
	    smalti_weights_vector(t5->encoder.weights, c->width, "encoder.final_layer_norm.weight");
}

static int count_shards(const struct smalti_t5_config *c)
{
	const int64_t wanted = c->width * c->ff_width / SHARD_WEIGHTS;
	const int64_t most = smalti_min(smalti_min(c->heads, c->ff_width), smalti_min(c->width, SMALTI_MANY));
	return (int)smalti_max(smalti_min(wanted, most), 1);
}

/* Where shard `shard` of `count` things begins. */
static int64_t shard_begin(const struct t5 *t5, int64_t count, int shard)
{
	return count * shard / t5->shards;
}

static int64_t shard_size(const struct t5 *t5, int64_t count, int shard)
{
	return shard_begin(t5, count, shard + 1) - shard_begin(t5, count, shard);
}

/* The sizes of all shards of `count` things of `each` columns. */
static void shard_columns(const struct t5 *t5, int64_t count, int64_t each, int64_t *columns)
{
	for (int shard = 0; shard < t5->shards; shard++)
		columns[shard] = shard_size(t5, count, shard) * each;
}

/* Captions that are computed together: captions first … end − 1, `tokens` in all. */
struct band {
	int64_t first, end, tokens, pairs;
	int64_t padding;                    /* of a single caption */
	struct smalti_tile *ids, *starts;   /* no starts of a single caption */
	struct smalti_tile *x[SMALTI_MANY]; /* the residual stream, in shards of columns */
};

/* One encoding under way. */
struct encoding {
	struct t5 *t5;
	struct smalti_task_group *task_group;
	const struct smalti_token_ids *texts;
	int64_t count, bands;
	struct band *band;
	double flops; /* of a band in a layer */
	bool placed;  /* shards have places, and their own parts of the weights */
	/* Of each shard, or SMALTI_ANYWHERE; what is not cut is computed at the first one's. */
	int place[SMALTI_MANY];
};

static void go_to(const struct encoding *e, int shard)
{
	smalti_task_group_place(e->task_group, e->place[shard]);
}

/* What a shard reads of a matrix. */
static struct smalti_weight *part_of(const struct encoding *e, const struct matrix *matrix, int shard)
{
	return e->placed ? matrix->part[shard] : matrix->weight;
}

static struct smalti_tile *rows_of(const struct encoding *e, const struct matrix *matrix, int shard)
{
	return smalti_weight_tile(part_of(e, matrix, shard));
}

/* The first of the matrix's `count` things that it has. */
static int64_t held_from(const struct encoding *e, int64_t count, int shard)
{
	return e->placed ? shard_begin(e->t5, count, shard) : 0;
}

static struct smalti_tile *new_shard(const struct encoding *e, const struct band *band, int64_t columns,
				     enum smalti_dtype dtype)
{
	return smalti_tile_new(e->task_group, band->tokens, columns * smalti_dtype_bytes(dtype));
}

static void release_shards(const struct encoding *e, struct smalti_tile **tiles)
{
	for (int shard = 0; shard < e->t5->shards; shard++)
		smalti_tile_release(tiles[shard]);
}

static struct smalti_tile *rmsnorm(const struct encoding *e, const struct band *band,
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
	go_to(e, 0);
	smalti_insert_rmsnorm(e->task_group, &buffers, &arguments);
	return y;
}

static struct smalti_tile *attend_heads(const struct encoding *e, const struct band *band,
					const struct block *b, struct smalti_tile *x, int shard)
{
	const struct t5 *t5 = e->t5;
	const struct smalti_t5_config *c = &t5->config;
	const int64_t heads = shard_size(t5, c->heads, shard);
	struct smalti_tile *y = new_shard(e, band, heads * c->head_dim, t5->compute);
	go_to(e, shard);
	smalti_insert(attend_heads, e->task_group,
		      (.x = x, .q = rows_of(e, &b->matrix[Q], shard), .k = rows_of(e, &b->matrix[K], shard),
		       .v = rows_of(e, &b->matrix[V], shard), .bias = t5->bias, .starts = band->starts,
		       .y = y),
		      .tokens = band->tokens, .in = c->width, .held = held_from(e, c->heads, shard),
		      .first_head = shard_begin(t5, c->heads, shard), .heads = heads, .head_dim = c->head_dim,
		      .captions = band->end - band->first, .pairs = band->pairs, .padding = band->padding,
		      .bias_reach = t5->reach, .compute = t5->compute,
		      .dtype = {b->matrix[Q].dtype, b->matrix[K].dtype, b->matrix[V].dtype});
	return y;
}

static struct smalti_tile *gated_gelu(const struct encoding *e, const struct band *band,
				      const struct block *b, struct smalti_tile *x, int shard)
{
	const struct t5 *t5 = e->t5;
	const struct smalti_t5_config *c = &t5->config;
	const int64_t columns = shard_size(t5, c->ff_width, shard);
	struct smalti_tile *y = new_shard(e, band, columns, t5->wide);
	go_to(e, shard);
	smalti_insert(gated_gelu, e->task_group,
		      (.x = x, .gate = rows_of(e, &b->matrix[WI_0], shard),
		       .weight = rows_of(e, &b->matrix[WI_1], shard), .y = y),
		      .rows = band->tokens, .in = c->width,
		      .first = shard_begin(t5, c->ff_width, shard) - held_from(e, c->ff_width, shard),
		      .columns = columns, .compute = t5->compute, .result = t5->wide,
		      .dtype = {b->matrix[WI_0].dtype, b->matrix[WI_1].dtype});
	return y;
}

/* x += the output projection of the shards y, which are `count` things of `each` columns in the dtype
 * `compute`; releases y. */
static void add_projection(const struct encoding *e, const struct band *band, const struct matrix *matrix,
			   enum smalti_dtype compute, struct smalti_tile **y, int64_t count, int64_t each)
{
	const struct t5 *t5 = e->t5;
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
		arguments.first = shard_begin(t5, width, shard) - held_from(e, width, shard);
		arguments.columns = shard_size(t5, width, shard);
		go_to(e, shard);
		smalti_insert_sum_shards(e->task_group, &buffers, &arguments);
	}
	release_shards(e, y);
}

/* x += O(attention(RMS(x))), scores unscaled and with the position bias (2.2, steps 1 to 4). */
static void self_attention(const struct encoding *e, const struct band *band, const struct block *b)
{
	const struct smalti_t5_config *c = &e->t5->config;
	struct smalti_tile *y[SMALTI_MANY];
	struct smalti_tile *h = rmsnorm(e, band, b->norm1, 0, band->tokens, e->t5->compute);
	for (int shard = 0; shard < e->t5->shards; shard++)
		y[shard] = attend_heads(e, band, b, h, shard);
	smalti_tile_release(h);
	add_projection(e, band, &b->matrix[O], e->t5->compute, y, c->heads, c->head_dim);
}

/* x += Wo(gelu(W0·n) ⊙ (W1·n)), n = RMS(x) (2.2, step 5). */
static void feed_forward(const struct encoding *e, const struct band *band, const struct block *b)
{
	struct smalti_tile *y[SMALTI_MANY];
	struct smalti_tile *h = rmsnorm(e, band, b->norm2, 0, band->tokens, e->t5->compute);
	for (int shard = 0; shard < e->t5->shards; shard++)
		y[shard] = gated_gelu(e, band, b, h, shard);
	smalti_tile_release(h);
	add_projection(e, band, &b->matrix[WO], e->t5->wide, y, e->t5->config.ff_width, 1);
}

/* The captions in their order, cut into the fewest bands that hold their tokens, as evenly as can be: each
 * goes to the band in which its middle lies. One with padding has its own. */
static int cut_into_bands(struct encoding *e, struct smalti_error *error)
{
	int64_t all = 0, begin = 0;
	e->band = smalti_calloc(e->count, sizeof(*e->band), error);
	if (!e->band)
		return -1;
	for (int64_t i = 0; i < e->count; i++)
		all += e->texts[i].count;
	const int64_t bands = (all + BAND_TOKENS - 1) / BAND_TOKENS;
	int64_t last = -1;
	for (int64_t i = 0; i < e->count; i++) {
		const int64_t tokens = e->texts[i].count, padding = e->texts[i].padding;
		const int64_t wanted = (2 * begin + tokens) * bands / (2 * all);
		if (wanted != last || padding)
			e->band[e->bands++].first = i;
		last = padding ? -1 : wanted;
		begin += tokens;
		struct band *band = &e->band[e->bands - 1];
		band->end = i + 1;
		band->tokens += tokens;
		band->pairs += tokens * (tokens - padding);
		band->padding = padding;
	}
	return 0;
}

static int upload(const struct encoding *e, struct band *band, struct smalti_error *error)
{
	const int64_t captions = band->end - band->first;
	SCOPED(free) int32_t *ids = smalti_calloc(band->tokens, sizeof(*ids), error);
	SCOPED(free) int64_t *starts = smalti_calloc(captions + 1, sizeof(*starts), error);
	if (!ids || !starts)
		return -1;
	for (int64_t i = 0; i < captions; i++) {
		const struct smalti_token_ids *words = &e->texts[band->first + i];
		memcpy(ids + starts[i], words->ids, (size_t)words->count * sizeof(*ids));
		starts[i + 1] = starts[i] + words->count;
	}
	band->ids = smalti_tile_upload(e->task_group, band->tokens, sizeof(*ids), ids);
	if (captions > 1)
		band->starts = smalti_tile_upload(e->task_group, captions + 1, sizeof(*starts), starts);
	return 0;
}

static void embed(const struct encoding *e, struct band *band)
{
	const struct t5 *t5 = e->t5;
	const struct smalti_t5_config *c = &t5->config;
	go_to(e, 0); /* the table is there alone */
	for (int shard = 0; shard < t5->shards; shard++) {
		const int64_t columns = shard_size(t5, c->width, shard);
		band->x[shard] = new_shard(e, band, columns, SMALTI_F32);
		if (band->x[shard])
			band->x[shard]->owner = e->place[shard];
		smalti_insert(embed_tokens, e->task_group,
			      (.ids = band->ids, .table = smalti_weight_tile(t5->embedding.weight),
			       .y = band->x[shard]),
			      .tokens = band->tokens, .dim = c->width, .vocabulary = c->vocabulary,
			      .first = shard_begin(t5, c->width, shard), .columns = columns,
			      .dtype = t5->embedding.dtype);
	}
}

/* What a band takes in a layer. Shards are for workers that share a caption. */
static double band_flops(const struct encoding *e)
{
	int64_t most = 0;
	for (int64_t j = 0; j < e->bands; j++)
		most = smalti_max(most, e->band[j].tokens);
	const bool whole = e->t5->shards == 1 && !e->t5->streamed;
	return whole ? (double)most * e->t5->encoder.token_flops / (double)e->t5->config.layers
		     : (double)INFINITY;
}

static void fuse(const struct encoding *e, enum smalti_grain grain, const char *name)
{
	const struct smalti_fusion fusion = {name, grain, e->flops, SMALTI_ANYWHERE};
	smalti_fuse_begin(e->task_group, &fusion);
}

/* The bias of every distance that a caption of these has, kept for later ones. */
static void reach_all(const struct encoding *e)
{
	enum { LEAST = 128 };
	struct t5 *t5 = e->t5;
	const struct smalti_t5_config *c = &t5->config;
	int64_t reach = LEAST;
	for (int64_t i = 0; i < e->count; i++)
		while (reach < e->texts[i].count)
			reach *= 2;
	if (t5->bias && reach <= t5->reach)
		return;
	smalti_tile_release(t5->bias);
	t5->reach = reach;
	t5->bias = smalti_tile_new(t5->task_group, c->heads, (2 * reach - 1) * (int64_t)sizeof(float));
	smalti_insert(relative_bias, t5->task_group,
		      (.table = smalti_weight_tile(t5->relative_bias), .bias = t5->bias), .heads = c->heads,
		      .buckets = c->buckets, .max_distance = c->max_distance, .reach = reach);
}

static void run_layer(const struct encoding *e, const struct block *b)
{
	const bool single = e->bands == 1;
	if (single)
		fuse(e, SMALTI_GRAIN_BLOCK, "text layer");
	for (int64_t j = 0; j < e->bands; j++) {
		fuse(e, SMALTI_GRAIN_HALF_BLOCK, "text attention");
		self_attention(e, &e->band[j], b);
		smalti_fuse_end(e->task_group);
	}
	for (int64_t j = 0; j < e->bands; j++) {
		fuse(e, SMALTI_GRAIN_HALF_BLOCK, "text feed-forward");
		feed_forward(e, &e->band[j], b);
		smalti_fuse_end(e->task_group);
	}
	if (single)
		smalti_fuse_end(e->task_group);
}

/* Has the layer's weights read ahead or, with `drops`, given back, where they are read. */
static void stream_layer(const struct encoding *e, const struct block *b, bool drops)
{
	const int parts = e->placed ? e->t5->shards : 1;
	for (int i = 0; i < MATRICES * parts; i++) {
		struct smalti_weight *weight = part_of(e, &b->matrix[i / parts], i % parts);
		go_to(e, i % parts);
		if (drops)
			smalti_weight_drop(e->task_group, weight);
		else
			smalti_weight_read_ahead(e->task_group, weight, e->band[0].x[i % parts]);
	}
}

/* Layer by layer, so that all captions share one reading of a layer's weights. */
static void run_layers(const struct encoding *e)
{
	const struct t5 *t5 = e->t5;
	for (int64_t i = 0; i < t5->config.layers && !smalti_task_group_broken(e->task_group); i++) {
		const struct block *b = &t5->blocks[i];
		smalti_task_group_at(e->task_group, i, -1);
		smalti_task_group_path(e->task_group, t5->config.layers - i);
		if (t5->streamed && i + 1 < t5->config.layers)
			stream_layer(e, b + 1, false);
		run_layer(e, b);
		if (t5->streamed)
			stream_layer(e, b, true);
	}
	smalti_task_group_at(e->task_group, -1, -1);
}

static void finish(const struct encoding *e, struct band *band, struct smalti_tile **hidden)
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

/* Each shard's rows of all matrices, for good. */
static int cut_weights(struct t5 *t5, struct smalti_error *error)
{
	for (int64_t i = 0; i < t5->config.layers && !t5->cut; i++)
		for (int m = 0; m < MATRICES; m++)
			for (int shard = 0; shard < t5->shards; shard++) {
				struct matrix *matrix = &t5->blocks[i].matrix[m];
				matrix->part[shard] = smalti_weights_table_rows(
				    matrix->weight, shard_begin(t5, matrix->count, shard) * matrix->each,
				    shard_size(t5, matrix->count, shard) * matrix->each, matrix->in);
			}
	t5->cut = true;
	return smalti_weights_status(t5->encoder.weights, error);
}

/* In blocks, by the shares. */
static int distribute(struct encoding *e, const struct smalti_strategy *strategy, struct smalti_error *error)
{
	struct smalti_partition shards;
	int places = 0;
	for (int i = 0; i < strategy->count; i++)
		places = (int)smalti_max(places, strategy->place[i] + 1);
	SCOPED(free) double *shares = smalti_calloc(places, sizeof(*shares), error);
	if (!shares || smalti_partition_even(&shards, e->t5->shards, 1, error) < 0)
		return -1;
	smalti_strategy_shares(strategy, shares, places);
	const int status = smalti_partition_distribute(&shards, shares, places, error);
	for (int shard = 0; shard < e->t5->shards && status == 0; shard++)
		e->place[shard] = shards.owner[shard];
	smalti_partition_free(&shards);
	return status;
}

/* An encoder of one shard is small: it stays where the policy, or over ranks the first one, has it. */
static int place_shards(struct encoding *e, const struct smalti_strategy *strategy,
			struct smalti_error *error)
{
	for (int shard = 0; shard < e->t5->shards; shard++)
		e->place[shard] = SMALTI_ANYWHERE;
	e->placed = strategy->count > 0 && e->t5->shards > 1;
	if (!e->placed)
		return 0;
	return cut_weights(e->t5, error) < 0 ? -1 : distribute(e, strategy, error);
}

static void encode(struct smalti_text_encoder *encoder, struct smalti_task_group *task_group,
		   const struct smalti_token_ids *texts, int64_t count,
		   const struct smalti_strategy *strategy, struct smalti_tile **hidden)
{
	struct t5 *t5 = (struct t5 *)encoder;
	struct encoding e = {.t5 = t5, .task_group = task_group, .texts = texts, .count = count};
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int64_t i = 0; i < count; i++)
		hidden[i] = NULL;
	int status = place_shards(&e, strategy, &error);
	if (status == 0)
		status = cut_into_bands(&e, &error);
	for (int64_t j = 0; status == 0 && j < e.bands; j++)
		status = upload(&e, &e.band[j], &error);
	if (status < 0)
		smalti_task_group_break(task_group, &error);
	e.flops = band_flops(&e);
	reach_all(&e);
	for (int64_t j = 0; j < e.bands; j++)
		embed(&e, &e.band[j]);
	if (t5->streamed)
		smalti_weight_drop(task_group, t5->embedding.weight);
	run_layers(&e);
	for (int64_t j = 0; j < e.bands; j++)
		finish(&e, &e.band[j], hidden);
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
	free(e.band);
}

static void free_t5(struct smalti_text_encoder *encoder)
{
	struct t5 *t5 = (struct t5 *)encoder;
	smalti_tile_release(t5->bias);
	smalti_weights_free(encoder->weights);
	free(t5->blocks);
	free(t5);
}

static int64_t mapped_bytes(const struct smalti_text_encoder *encoder)
{
	enum { LAYERS_AT_A_TIME = 3 }; /* the one computed, the one dropped, the one read ahead */
	const struct t5 *t5 = (const struct t5 *)encoder;
	const int64_t all = smalti_weights_file_bytes(encoder->weights);
	if (!t5->streamed || t5->config.layers <= LAYERS_AT_A_TIME)
		return all;
	return all / t5->config.layers * LAYERS_AT_A_TIME;
}

/* The stream and its norm, q, k, v and o, the feed-forward's hidden values; then all results. */
static int64_t working_bytes(const struct smalti_text_encoder *encoder, int64_t tokens)
{
	const struct smalti_t5_config *c = &((const struct t5 *)encoder)->config;
	return tokens * (4 * c->width + 4 * c->inner + c->ff_width) * (int64_t)sizeof(float);
}

static void stream(struct smalti_text_encoder *encoder)
{
	((struct t5 *)encoder)->streamed = true;
}

static const struct smalti_text_encoder_functions functions = {
    .free = free_t5,
    .working_bytes = working_bytes,
    .mapped_bytes = mapped_bytes,
    .stream = stream,
    .encode = encode,
};

struct smalti_text_encoder *smalti_t5_new(struct smalti_task_group *task_group,
					  const struct smalti_t5_config *config,
					  const struct smalti_checkpoint *checkpoint,
					  enum smalti_dtype compute, struct smalti_error *error)
{
	const struct smalti_t5_config *c = config;
	struct t5 *t5 = smalti_calloc(1, sizeof(*t5), error);
	if (!t5)
		return NULL;
	t5->encoder = (struct smalti_text_encoder){
	    .functions = &functions,
	    .width = c->width,
	    .vocabulary = c->vocabulary,
	    .token_flops = 2.0 * (double)(c->layers * c->width * (4 * c->inner + 3 * c->ff_width)),
	};
	t5->config = *config;
	t5->compute = compute;
	t5->wide = compute == SMALTI_F16 ? SMALTI_F32 : compute; /* docs/reference.md 2.2 */
	t5->shards = count_shards(config);
	t5->task_group = task_group;
	t5->blocks = smalti_calloc(config->layers, sizeof(*t5->blocks), error);
	t5->encoder.weights = smalti_weights_new(task_group, checkpoint, compute, error);
	if (t5->blocks && t5->encoder.weights) {
		load(t5);
		if (smalti_weights_status(t5->encoder.weights, error) == 0)
			return &t5->encoder;
	}
	free_t5(&t5->encoder);
	return NULL;
}
