/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one head that is wider than a kernel can hold (the VAE's has 512 columns): two products, with
 * the scores of some queries in memory between them. */
#include "codelets/device_parts.h"

#include "base/dtype.h"
#include "kernels/attention.h"

enum {
	WIDE = 256,   /* columns: with more, the kernel computes the scores three times or more */
	MULTIPLE = 64 /* of queries, if not all have room */
};

struct wide {
	const struct attention_memories *data;
	const struct attention_arguments *a;
	struct wide_attention_arguments at;         /* the current queries */
	const struct smalti_device_memory *state;   /* f32 [2 + head_dim, queries] */
	const struct smalti_device_memory *scores;  /* f32 [current queries, keys of all tiles] */
	const struct smalti_device_memory *weights; /* as the products' operands */
	const struct smalti_device_memory *factors;
};

bool smalti_device_attends_wide(struct smalti_device *device, const struct attention_memories *data,
				const struct attention_arguments *a)
{
	return a->heads == 1 && a->head_dim > WIDE && a->head_dim % SMALTI_EIGHT == 0 && !data->bias &&
	       !data->lse && smalti_device_operands(device, a->dtype) == a->dtype;
}

/* Computes the scores [queries, keys of the tile] = q·kᵀ, from the tile's first key on. */
static int score(struct smalti_device *device, const struct wide *w, int tile, int64_t column,
		 struct smalti_error *error)
{
	const struct attention_arguments *a = w->a;
	const struct smalti_device_product product = {.rows = w->at.rows,
						      .in = a->head_dim,
						      .out = a->keys[tile],
						      .x_first = w->at.first * a->head_dim,
						      .x_stride = a->head_dim,
						      .w_stride = 2 * a->head_dim,
						      .y_first = column,
						      .y_stride = w->at.stride,
						      .dtype = a->dtype};
	return smalti_device_product(device, &product, w->data->q, w->data->kv[tile], w->scores, error);
}

/* Adds vᵀ·weightsᵀ of the tile's keys to the state's values [head_dim, queries], or initialises them. */
static int add_values(struct smalti_device *device, const struct wide *w, int tile, int64_t column,
		      struct smalti_error *error)
{
	const struct attention_arguments *a = w->a;
	const struct smalti_device_product product = {.rows = a->head_dim,
						      .in = a->keys[tile],
						      .out = w->at.rows,
						      .x_first = a->head_dim,
						      .x_stride = 2 * a->head_dim,
						      .w_first = column,
						      .w_stride = w->at.stride,
						      .y_first = 2 * a->queries + w->at.first,
						      .y_stride = a->queries,
						      .turned_x = true,
						      .adds = !a->first || column > 0,
						      .dtype = a->dtype};
	return smalti_device_product(device, &product, w->data->kv[tile], w->weights, w->state, error);
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
	const int64_t values = w->at.rows * a->head_dim;
	const struct smalti_device_memory *const softened[] = {w->scores, w->weights, w->state, w->factors},
						 *const scaled[] = {w->factors, w->state},
						 *const divided[] = {w->state, w->data->y};
	if (each_tile(device, w, score, error) < 0 ||
	    smalti_device_groups(device, SMALTI_DEVICE_FORM("soften", a->dtype), w->at.rows, softened, &w->at,
				 error) < 0)
		return -1;
	if (!a->first && smalti_device_elements(device, "scale_values", values, scaled, &w->at, error) < 0)
		return -1;
	if (each_tile(device, w, add_values, error) < 0)
		return -1;
	return a->last ? smalti_device_elements(device, SMALTI_DEVICE_FORM("divide_values", a->dtype),
						values / SMALTI_EIGHT, divided, &w->at, error)
		       : 0;
}

/* Sets the state in *w, shared with the tasks before and after. The last task only reads it, so it gets a
 * copy. */
static int take_state(struct smalti_device *device, struct wide *w, struct smalti_error *error)
{
	const struct attention_arguments *a = w->a;
	const struct copy_arguments copy = {smalti_attention_state(a->queries, a->heads, a->head_dim) *
					    (int64_t)sizeof(float)};
	w->state =
	    a->last ? smalti_device_scratch(device, SMALTI_DEVICE_X, copy.bytes, error) : w->data->state;
	const struct smalti_device_memory *const buffers[] = {w->data->state, w->state};
	if (!w->state || a->first || !a->last)
		return w->state ? 0 : -1;
	return smalti_device_elements(device, "copy", copy.bytes / 4, buffers, &copy, error);
}

/* Takes scratch for `queries` queries. */
static int take_room(struct smalti_device *device, struct wide *w, int64_t queries,
		     struct smalti_error *error)
{
	const int64_t scores = queries * w->at.stride, f32 = (int64_t)sizeof(float);
	const enum smalti_dtype dtype = w->a->dtype;
	w->scores = w->weights = smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT, scores * f32, error);
	w->factors = smalti_device_scratch(device, SMALTI_DEVICE_COEFFICIENTS, queries * f32, error);
	if (w->scores && dtype != SMALTI_F32)
		w->weights = smalti_device_scratch(device, SMALTI_DEVICE_ROUNDED,
						   scores * smalti_dtype_bytes(dtype), error);
	return w->scores && w->weights && w->factors ? 0 : -1;
}

/* Returns how many queries' scores have room at once. */
static int64_t max_queries(const struct smalti_device *device, const struct wide *w)
{
	const int64_t room = smalti_device_room(device) / (w->at.stride * (int64_t)sizeof(float));
	const int64_t whole = room / MULTIPLE * MULTIPLE;
	const int64_t max = smalti_min(w->a->queries, (int64_t)UINT32_MAX / w->a->head_dim);
	return smalti_min(max, smalti_max(1, whole ? whole : room));
}

int smalti_device_attend_wide(struct smalti_device *device, const struct attention_memories *data,
			      const struct attention_arguments *a, struct smalti_error *error)
{
	struct wide w = {
	    .data = data,
	    .a = a,
	    .at = {.queries = a->queries, .columns = a->head_dim, .scale = a->scale, .begins = a->first}};
	for (int tile = 0; tile < SMALTI_MANY; tile++)
		w.at.keys += a->keys[tile];
	w.at.stride = smalti_round_up(w.at.keys, SMALTI_EIGHT);
	const int64_t step = max_queries(device, &w);
	if (take_state(device, &w, error) < 0 || take_room(device, &w, step, error) < 0)
		return -1;
	for (; w.at.first < a->queries; w.at.first += step) {
		w.at.rows = smalti_min(step, a->queries - w.at.first);
		if (attend_queries(device, &w, error) < 0)
			return -1;
	}
	return 0;
}
