/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/weights.h"

#include "base/alloc.h"
#include "codelets/codelets.h"
#include "kernels/conv.h"
#include "kernels/matmul.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 3, NAME_LENGTH = 160 };

enum form { FORM_RAW, FORM_VECTOR, FORM_MATMUL, FORM_CONV };

struct smalti_weight {
	struct smalti_weights *weights;
	enum form form;
	enum smalti_dtype compute;
	int64_t in, out; /* of a matrix or convolution */
	int stride;      /* of a convolution */
	int64_t bytes;   /* of the made form */
	int parts;
	struct smalti_tensor_view part[MAX_PARTS];
	bool fixed;                         /* its form is not to be changed */
	void *host;                         /* owned memory that part[0] lies in, when it is not the file's */
	struct smalti_tile *tile;           /* of the made form … */
	struct smalti_tile *raw[MAX_PARTS]; /* … or of the parts, when they are left raw */
	struct smalti_weight *next;
};

struct smalti_weights {
	struct smalti_task_group *task_group;
	const struct smalti_checkpoint *checkpoint;
	enum smalti_dtype compute;
	bool transient;
	struct smalti_error error;
	struct smalti_weight *first;
	int64_t bytes;
};

struct smalti_weights *smalti_weights_new(struct smalti_task_group *task_group,
					  const struct smalti_checkpoint *checkpoint,
					  enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_weights *weights = smalti_calloc(1, sizeof(*weights), error);
	if (!weights)
		return NULL;
	weights->task_group = task_group;
	weights->checkpoint = checkpoint;
	weights->compute = compute;
	return weights;
}

int smalti_weights_status(const struct smalti_weights *weights, struct smalti_error *error)
{
	if (weights->error.code == SMALTI_OK)
		return 0;
	return smalti_fail(error, weights->error.code, "%s", weights->error.message);
}

void smalti_weights_set_transient(struct smalti_weights *weights, bool transient)
{
	weights->transient = transient;
}

int64_t smalti_weights_bytes(const struct smalti_weights *weights)
{
	return weights->transient ? 0 : weights->bytes;
}

bool smalti_weights_is_transient(const struct smalti_weights *weights)
{
	return weights->transient;
}

int64_t smalti_weights_file_bytes(const struct smalti_weights *weights)
{
	int64_t bytes = 0;
	for (const struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		for (int i = 0; i < weight->parts; i++)
			bytes += weight->part[i].bytes;
	return bytes;
}

void smalti_weights_leave_raw(struct smalti_weights *weights)
{
	for (struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		if (weight->form == FORM_MATMUL && !weight->fixed) {
			weight->form = FORM_RAW;
			weights->bytes -= weight->bytes;
			weight->bytes = 0;
		}
}

void smalti_weights_free(struct smalti_weights *weights)
{
	if (!weights)
		return;
	if (weights->task_group)
		smalti_task_group_wait(weights->task_group); /* its tasks read `host` and the checkpoint */
	for (struct smalti_weight *weight = weights->first, *next; weight; weight = next) {
		next = weight->next;
		smalti_tile_release(weight->tile);
		for (int i = 0; i < MAX_PARTS; i++)
			smalti_tile_release(weight->raw[i]);
		free(weight->host);
		free(weight);
	}
	free(weights);
}

static struct smalti_weight *add(struct smalti_weights *weights, enum form form)
{
	if (weights->error.code != SMALTI_OK)
		return NULL;
	struct smalti_weight *weight = smalti_calloc(1, sizeof(*weight), &weights->error);
	if (!weight)
		return NULL;
	weight->weights = weights;
	weight->form = form;
	weight->compute = weights->compute;
	weight->next = weights->first;
	weights->first = weight;
	return weight;
}

static void add_part(struct smalti_weight *weight, int rank, const int64_t *shape, const char *name)
{
	struct smalti_weights *weights = weight->weights;
	if (smalti_checkpoint_find(weights->checkpoint, name, rank, shape, &weight->part[weight->parts],
				   &weights->error) == 0)
		weight->parts++;
}

/* The made form's size is known: the weight is whole, unless something failed. */
static struct smalti_weight *whole(struct smalti_weight *weight, int64_t bytes)
{
	if (weight->weights->error.code != SMALTI_OK)
		return NULL;
	weight->bytes = bytes;
	weight->weights->bytes += bytes;
	return weight;
}

static struct smalti_weight *vector(struct smalti_weights *weights, int rank, const int64_t *shape,
				    const char *name)
{
	struct smalti_weight *weight = add(weights, FORM_VECTOR);
	if (!weight)
		return NULL;
	add_part(weight, rank, shape, name);
	int64_t count = 1;
	for (int i = 0; i < rank; i++)
		count *= shape[i];
	return whole(weight, count * (int64_t)sizeof(float));
}

struct smalti_weight *smalti_weights_vector(struct smalti_weights *weights, int64_t count, const char *name,
					    ...)
{
	char full[NAME_LENGTH];
	va_list args;
	va_start(args, name);
	vsnprintf(full, sizeof(full), name, args);
	va_end(args);
	return vector(weights, 1, (const int64_t[]){count}, full);
}

struct smalti_weight *smalti_weights_rows(struct smalti_weights *weights, int64_t rows, int64_t columns,
					  const char *name)
{
	return vector(weights, 2, (const int64_t[]){rows, columns}, name);
}

struct smalti_weight *smalti_weights_table(struct smalti_weights *weights, int64_t rows, int64_t columns,
					   enum smalti_dtype *dtype, const char *name)
{
	struct smalti_weight *weight = add(weights, FORM_RAW);
	if (!weight)
		return NULL;
	add_part(weight, 2, (const int64_t[]){rows, columns}, name);
	*dtype = weight->part[0].dtype;
	return whole(weight, 0);
}

/* Too many parts for one task, and small: put together here. */
struct smalti_weight *smalti_weights_stack(struct smalti_weights *weights, int64_t count, int64_t rows,
					   int64_t columns, const char *name)
{
	struct smalti_weight *weight = add(weights, FORM_VECTOR);
	if (!weight)
		return NULL;
	const int64_t elements = rows * columns;
	float *all = smalti_calloc(count * elements, sizeof(*all), &weights->error);
	weight->host = all;
	for (int64_t i = 0; all && i < count; i++) {
		char full[NAME_LENGTH];
		const char *at = strstr(name, "%d");
		snprintf(full, sizeof(full), "%.*s%lld%s", (int)(at - name), name, (long long)i, at + 2);
		struct smalti_tensor_view view;
		if (smalti_checkpoint_find(weights->checkpoint, full, 2, (const int64_t[]){rows, columns},
					   &view, &weights->error) < 0)
			return NULL;
		if (view.data)
			smalti_widen(view.dtype, view.data, elements, all + i * elements);
	}
	weight->parts = 1;
	weight->part[0] = (struct smalti_tensor_view){
	    .dtype = SMALTI_F32, .data = all, .bytes = count * elements * (int64_t)sizeof(float)};
	return whole(weight, count * elements * (int64_t)sizeof(float));
}

static struct smalti_weight *packed(struct smalti_weight *weight, enum smalti_dtype compute, int64_t in,
				    int64_t out)
{
	weight->compute = compute;
	weight->in = in;
	weight->out = out;
	struct smalti_error *error = &weight->weights->error;
	if (error->code != SMALTI_OK)
		return NULL;
	int64_t bytes = weight->form == FORM_CONV
			    ? smalti_conv_packed_bytes(in, out, weight->stride, compute, error)
			    : smalti_matmul_packed_bytes(in, out, compute, error);
	return whole(weight, bytes);
}

struct smalti_linear smalti_weights_linear(struct smalti_weights *weights, int64_t in, int64_t out, bool bias,
					   const char *prefix, const char *const parts[3])
{
	struct smalti_weight *weight = add(weights, FORM_MATMUL);
	struct smalti_weight *vector_of_biases = bias ? add(weights, FORM_VECTOR) : NULL;
	if (!weight || (bias && !vector_of_biases))
		return (struct smalti_linear){0};
	int count = 0;
	while (count < MAX_PARTS && parts[count])
		count++;
	for (int i = 0; i < count; i++) {
		char name[NAME_LENGTH];
		snprintf(name, sizeof(name), "%s%s.weight", prefix, parts[i]);
		add_part(weight, 2, (const int64_t[]){out / count, in}, name);
		snprintf(name, sizeof(name), "%s%s.bias", prefix, parts[i]);
		if (bias)
			add_part(vector_of_biases, 1, (const int64_t[]){out / count}, name);
	}
	struct smalti_linear linear = {.in = in, .out = out, .compute = weights->compute};
	linear.weight = packed(weight, weights->compute, in, out);
	linear.bias = bias ? whole(vector_of_biases, out * (int64_t)sizeof(float)) : NULL;
	return linear;
}

/* One tensor of any shape as a matrix. */
static struct smalti_linear reshaped(struct smalti_weights *weights, const int64_t *shape, int rank,
				     enum smalti_dtype compute, const char *prefix)
{
	struct smalti_weight *weight = add(weights, FORM_MATMUL);
	if (!weight)
		return (struct smalti_linear){0};
	weight->fixed = true;
	struct smalti_linear linear = {.in = 1, .out = shape[0], .compute = compute};
	for (int i = 1; i < rank; i++)
		linear.in *= shape[i];
	char name[NAME_LENGTH];
	snprintf(name, sizeof(name), "%s.weight", prefix);
	add_part(weight, rank, shape, name);
	linear.weight = packed(weight, compute, linear.in, linear.out);
	linear.bias = smalti_weights_vector(weights, linear.out, "%s.bias", prefix);
	return linear;
}

struct smalti_linear smalti_weights_linear_1x1(struct smalti_weights *weights, int64_t in, int64_t out,
					       const char *prefix)
{
	return reshaped(weights, (const int64_t[]){out, in, 1, 1}, 4, weights->compute, prefix);
}

struct smalti_linear smalti_weights_exact_linear(struct smalti_weights *weights, const int64_t *shape,
						 int rank, const char *prefix)
{
	return reshaped(weights, shape, rank, SMALTI_F32, prefix);
}

struct smalti_kernel smalti_weights_conv(struct smalti_weights *weights, int64_t in, int64_t out, int stride,
					 const char *prefix)
{
	struct smalti_weight *weight = add(weights, FORM_CONV);
	if (!weight)
		return (struct smalti_kernel){0};
	char name[NAME_LENGTH];
	snprintf(name, sizeof(name), "%s.weight", prefix);
	add_part(weight, 4, (const int64_t[]){out, in, 3, 3}, name);
	struct smalti_kernel kernel = {.in = in, .out = out, .stride = stride};
	weight->stride = stride;
	kernel.weight = packed(weight, weights->compute, in, out);
	kernel.bias = smalti_weights_vector(weights, out, "%s.bias", prefix);
	return kernel;
}

struct smalti_affine smalti_weights_affine(struct smalti_weights *weights, int64_t channels,
					   const char *prefix)
{
	return (struct smalti_affine){.gamma = smalti_weights_vector(weights, channels, "%s.weight", prefix),
				      .beta = smalti_weights_vector(weights, channels, "%s.bias", prefix),
				      .channels = channels};
}

static struct smalti_tile *part_tile(const struct smalti_weight *weight, int index)
{
	if (index >= weight->parts)
		return NULL;
	return smalti_tile_over(weight->weights->task_group, 1, weight->part[index].bytes,
				weight->part[index].data);
}

static void make(struct smalti_weight *weight, struct smalti_tile *const parts[MAX_PARTS],
		 struct smalti_tile *after)
{
	struct smalti_task_group *task_group = weight->weights->task_group;
	const struct smalti_tensor_view *part = weight->part;
	if (weight->form == FORM_VECTOR)
		smalti_insert(widen, task_group, (parts[0], parts[1], parts[2], weight->tile),
			      .dtype = {part[0].dtype, part[1].dtype, part[2].dtype},
			      .count = {part[0].bytes / smalti_dtype_bytes(part[0].dtype),
					part[1].bytes / smalti_dtype_bytes(part[1].dtype),
					part[2].bytes / smalti_dtype_bytes(part[2].dtype)});
	else if (weight->form == FORM_MATMUL)
		smalti_insert(pack_matmul, task_group, (parts[0], parts[1], parts[2], weight->tile),
			      .in = weight->in, .out = weight->out, .compute = weight->compute,
			      .dtype = {part[0].dtype, part[1].dtype, part[2].dtype},
			      .rows = {part[0].shape[0], part[1].shape[0], part[2].shape[0]});
	else
		smalti_insert(pack_conv, task_group,
			      (.raw = parts[0], .after = weight->weights->transient ? after : NULL,
			       .packed = weight->tile),
			      .in = weight->in, .out = weight->out, .stride = weight->stride,
			      .compute = weight->compute, .dtype = part[0].dtype);
}

bool smalti_weight_is_raw(const struct smalti_weight *weight)
{
	return weight && weight->form == FORM_RAW;
}

struct smalti_tile *smalti_weight_part(struct smalti_weight *weight, int index)
{
	if (!weight->raw[index])
		weight->raw[index] = part_tile(weight, index);
	return weight->raw[index];
}

struct smalti_tile *smalti_weight_tile_after(struct smalti_weight *weight, struct smalti_tile *after)
{
	if (smalti_weight_is_raw(weight))
		return smalti_weight_part(weight, 0);
	if (!weight || weight->tile)
		return weight ? weight->tile : NULL;
	struct smalti_tile *parts[MAX_PARTS] = {part_tile(weight, 0), part_tile(weight, 1),
						part_tile(weight, 2)};
	weight->tile = smalti_tile_new(weight->weights->task_group, 1, weight->bytes);
	make(weight, parts, after);
	for (int i = 0; i < MAX_PARTS; i++)
		smalti_tile_release(parts[i]);
	return weight->tile;
}

struct smalti_tile *smalti_weight_tile(struct smalti_weight *weight)
{
	return smalti_weight_tile_after(weight, NULL);
}

void smalti_weight_done(struct smalti_weight *weight)
{
	if (!weight || !weight->weights->transient)
		return;
	smalti_tile_release(weight->tile);
	weight->tile = NULL;
}

const struct smalti_tensor_view *smalti_weight_view(const struct smalti_weight *weight, int index)
{
	return &weight->part[index];
}

void smalti_weight_read_ahead(struct smalti_task_group *task_group, struct smalti_weight *weight,
			      struct smalti_tile *after)
{
	smalti_insert(read_ahead, task_group, (.weight = smalti_weight_tile(weight), .after = after),
		      .bytes = weight->part[0].bytes);
}

void smalti_weight_drop(struct smalti_task_group *task_group, struct smalti_weight *weight)
{
	smalti_insert(drop_pages, task_group, (.weight = smalti_weight_tile(weight)),
		      .bytes = weight->part[0].bytes);
}
