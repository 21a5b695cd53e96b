/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one head that is wider than what a kernel holds of it (the VAE's has 512 columns): the scores
 * of some queries are in memory at once, between two products. */
#include "codelets/device_parts.h"

#include "base/dtype.h"

enum {
	WIDE = 256,   /* columns: of more the kernel computes the scores three times and more */
	MULTIPLE = 64 /* of queries, where not all have room */
};

struct wide {
	const struct attention_memories *data;
	const struct attention_arguments *a;
	int64_t first, queries; /* those that are under way */
	int64_t keys, stride;   /* of all tiles; from one query's scores to the next's */
	const struct smalti_device_memory *scores, *weights, *sums, *z;
};

bool smalti_device_attends_wide(struct smalti_device *device, const struct attention_memories *data,
				const struct attention_arguments *a)
{
	return a->heads == 1 && a->head_dim > WIDE && a->head_dim % SMALTI_EIGHT == 0 && a->first &&
	       a->last && !data->bias && smalti_device_operands(device, a->dtype) == a->dtype;
}

/* Scores [queries, keys of the tile] = q·kᵀ, from the tile's first key on. */
static int score(struct smalti_device *device, const struct wide *w, int tile, int64_t column,
		 struct smalti_error *error)
{
	const struct attention_arguments *a = w->a;
	const struct smalti_device_product product = {.rows = w->queries,
						      .in = a->head_dim,
						      .out = a->keys[tile],
						      .x_first = w->first * a->head_dim,
						      .x_stride = a->head_dim,
						      .w_stride = 2 * a->head_dim,
						      .y_first = column,
						      .y_stride = w->stride,
						      .dtype = a->dtype};
	return smalti_device_product(device, &product, w->data->q, w->data->kv[tile], w->scores, error);
}

/* z [queries, head_dim] (+)= weights·v, of the tile's keys. */
static int add_values(struct smalti_device *device, const struct wide *w, int tile, int64_t column,
		      struct smalti_error *error)
{
	const struct attention_arguments *a = w->a;
	const struct smalti_device_product product = {.rows = w->queries,
						      .in = a->keys[tile],
						      .out = a->head_dim,
						      .x_first = column,
						      .x_stride = w->stride,
						      .w_first = a->head_dim,
						      .w_stride = 2 * a->head_dim,
						      .y_stride = a->head_dim,
						      .turned_w = true,
						      .adds = column > 0,
						      .dtype = a->dtype};
	return smalti_device_product(device, &product, w->weights, w->data->kv[tile], w->z, error);
}

static int each_tile(struct smalti_device *device, const struct wide *w,
		     int (*act)(struct smalti_device *, const struct wide *, int, int64_t,
				struct smalti_error *),
		     struct smalti_error *error)
{
	int64_t column = 0;
	for (int tile = 0; tile < SMALTI_MANY && w->a->keys[tile] > 0; column += w->a->keys[tile++])
		if (act(device, w, tile, column, error) < 0)
			return -1;
	return 0;
}

static int attend_queries(struct smalti_device *device, const struct wide *w, struct smalti_error *error)
{
	const struct attention_arguments *a = w->a;
	const struct soften_arguments soften = {w->queries, w->keys, w->stride, a->scale};
	const struct divide_rows_arguments divide = {w->queries, a->head_dim, w->first * a->head_dim};
	const struct smalti_device_memory *const softened[] = {w->scores, w->weights, w->sums},
						 *const divided[] = {w->z, w->sums, w->data->y};
	if (each_tile(device, w, score, error) < 0 ||
	    smalti_device_groups(device, SMALTI_DEVICE_FORM("soften", a->dtype), w->queries, softened,
				 &soften, error) < 0 ||
	    each_tile(device, w, add_values, error) < 0)
		return -1;
	return smalti_device_elements(device, SMALTI_DEVICE_FORM("divide_rows", a->dtype),
				      w->queries * a->head_dim / SMALTI_EIGHT, divided, &divide, error);
}

/* Takes room for so many queries. */
static int take_room(struct smalti_device *device, struct wide *w, int64_t queries,
		     struct smalti_error *error)
{
	const int64_t scores = queries * w->stride, f32 = (int64_t)sizeof(float);
	w->scores = w->weights = smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT, scores * f32, error);
	w->sums = smalti_device_scratch(device, SMALTI_DEVICE_COEFFICIENTS, queries * f32, error);
	w->z = smalti_device_scratch(device, SMALTI_DEVICE_X, queries * w->a->head_dim * f32, error);
	if (w->scores && w->a->dtype != SMALTI_F32)
		w->weights = smalti_device_scratch(device, SMALTI_DEVICE_ROUNDED,
						   scores * smalti_dtype_bytes(w->a->dtype), error);
	return w->scores && w->weights && w->sums && w->z ? 0 : -1;
}

/* Returns how many queries' scores have room at once. */
static int64_t most_queries(const struct smalti_device *device, const struct wide *w)
{
	const int64_t room = smalti_device_room(device) / (w->stride * (int64_t)sizeof(float));
	const int64_t whole = room / MULTIPLE * MULTIPLE;
	return smalti_min(w->a->queries, smalti_max(1, whole ? whole : room));
}

int smalti_device_attend_wide(struct smalti_device *device, const struct attention_memories *data,
			      const struct attention_arguments *a, struct smalti_error *error)
{
	struct wide w = {.data = data, .a = a};
	for (int tile = 0; tile < SMALTI_MANY; tile++)
		w.keys += a->keys[tile];
	w.stride = smalti_round_up(w.keys, SMALTI_EIGHT);
	const int64_t step = most_queries(device, &w);
	if (take_room(device, &w, step, error) < 0)
		return -1;
	for (; w.first < a->queries; w.first += step) {
		w.queries = smalti_min(step, a->queries - w.first);
		if (attend_queries(device, &w, error) < 0)
			return -1;
	}
	return 0;
}
