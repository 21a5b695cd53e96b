/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/weights.h"
#include "codelets/codelets.h"
#include "graphs/weight_parts.h"
#include "rt/devices_alone.h"

#include <stdarg.h>

enum { NAME_LENGTH = 160 };

static int check_files(const void *checkpoint, struct smalti_error *error)
{
	return smalti_checkpoint_check(checkpoint, error);
}

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
	weights->files = (struct smalti_task_group_source){check_files, checkpoint, NULL};
	if (task_group)
		smalti_task_group_reads(task_group, &weights->files);
	return weights;
}

int smalti_weights_status(const struct smalti_weights *weights, struct smalti_error *error)
{
	return smalti_pass(error, &weights->error);
}

const struct smalti_checkpoint *smalti_weights_checkpoint(const struct smalti_weights *weights)
{
	return weights->checkpoint;
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

static int64_t file_bytes(const struct smalti_weight *weight)
{
	int64_t bytes = 0;
	for (int i = 0; i < weight->source.parts; i++)
		bytes += weight->source.part[i].bytes;
	return bytes;
}

int64_t smalti_weight_device_bytes(const struct smalti_weight *weight)
{
	return weight->raw ? file_bytes(weight) : weight->forms.bytes[SMALTI_DEVICE_GPU];
}

/* Returns the sum over all weights that are no part of another. */
static int64_t sum(const struct smalti_weights *weights, int64_t (*bytes_of)(const struct smalti_weight *))
{
	int64_t bytes = 0;
	for (const struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		bytes += weight->slice ? 0 : bytes_of(weight);
	return bytes;
}

int64_t smalti_weights_file_bytes(const struct smalti_weights *weights)
{
	return sum(weights, file_bytes);
}

/* Returns the bytes of the form that CPUs compute with. */
static int64_t made_bytes(const struct smalti_weight *weight)
{
	return weight->raw ? 0 : weight->forms.bytes[SMALTI_DEVICE_CPU];
}

static int64_t read_bytes(const struct smalti_weight *weight)
{
	return weight->raw ? file_bytes(weight) : made_bytes(weight);
}

int64_t smalti_weights_read_bytes(const struct smalti_weights *weights)
{
	return sum(weights, read_bytes);
}

int64_t smalti_weights_device_bytes(const struct smalti_weights *weights)
{
	return sum(weights, smalti_weight_device_bytes);
}

static bool is_coded(const struct smalti_weight *weight)
{
	bool coded = false;
	for (int i = 0; i < weight->source.parts; i++)
		coded = coded || weight->source.part[i].coding;
	return coded;
}

bool smalti_weights_have_int8(const struct smalti_weights *weights)
{
	for (const struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		if (smalti_weight_is_int8(weight))
			return true;
	return false;
}

void smalti_weights_leave_raw(struct smalti_weights *weights)
{
	for (struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		if (weight->source.kind == SMALTI_WEIGHT_MATRIX && !weight->fixed && !is_coded(weight)) {
			weights->bytes -= made_bytes(weight);
			weight->raw = true;
		}
}

void smalti_weights_free(struct smalti_weights *weights)
{
	if (!weights)
		return;
	if (weights->task_group) {
		smalti_task_group_wait(weights->task_group); /* its tasks read `host` and the checkpoint */
		smalti_task_group_drop_source(weights->task_group, &weights->files);
	}
	for (struct smalti_weight *weight = weights->first, *next; weight; weight = next) {
		next = weight->next;
		smalti_tile_release(weight->tile);
		for (int i = 0; i < SMALTI_WEIGHT_PARTS; i++) {
			smalti_tile_release(weight->part[i]);
			if (!weight->slice)
				smalti_merge_free(weight->source.merge[i]);
		}
		free(weight->host);
		free(weight);
	}
	free(weights);
}

static struct smalti_weight *add(struct smalti_weights *weights, enum smalti_weight_kind kind)
{
	if (weights->error.code != SMALTI_OK)
		return NULL;
	struct smalti_weight *weight = smalti_calloc(1, sizeof(*weight), &weights->error);
	if (!weight)
		return NULL;
	weight->weights = weights;
	weight->source = (struct smalti_weight_source){.kind = kind, .compute = SMALTI_F32};
	weight->next = weights->first;
	weights->first = weight;
	return weight;
}

/* Adds what adapters change of a part. Such a weight is never raw: the file does not have it. */
static void add_merge(struct smalti_weight *weight, int part)
{
	struct smalti_weights *weights = weight->weights;
	struct smalti_weight_source *source = &weight->source;
	if (smalti_merge_new(&source->merge[part], weights->checkpoint->adapters, &source->part[part],
			     &weights->error) == 0 &&
	    source->merge[part])
		weight->fixed = true;
}

static void add_part(struct smalti_weight *weight, int rank, const int64_t *shape, const char *name)
{
	struct smalti_weights *weights = weight->weights;
	struct smalti_weight_source *source = &weight->source;
	if (weights->parameters)
		smalti_weight_add_parameter(weight, name);
	else if (smalti_checkpoint_find(weights->checkpoint, name, rank, shape, &source->part[source->parts],
					&weights->error) == 0)
		add_merge(weight, source->parts++);
}

/* Makes the forms of a complete weight; NULL after a failure. A parameter has none. */
static struct smalti_weight *whole(struct smalti_weight *weight)
{
	struct smalti_weights *weights = weight->weights;
	weight->raw = weight->raw || weights->parameters;
	if (weights->error.code != SMALTI_OK ||
	    (!weights->parameters &&
	     smalti_weight_forms(&weight->source, &weight->forms, &weights->error) < 0))
		return NULL;
	weights->bytes += made_bytes(weight);
	return weight;
}

/* Makes the forms for products in a dtype. */
static struct smalti_weight *whole_for(struct smalti_weight *weight, enum smalti_dtype compute)
{
	weight->source.compute = compute;
	return whole(weight);
}

static struct smalti_weight *vector(struct smalti_weights *weights, enum smalti_dtype compute, int rank,
				    const int64_t *shape, const char *name)
{
	struct smalti_weight *weight = add(weights, SMALTI_WEIGHT_VECTOR);
	if (!weight)
		return NULL;
	add_part(weight, rank, shape, name);
	return whole_for(weight, compute);
}

struct smalti_weight *smalti_weights_vector(struct smalti_weights *weights, int64_t count, const char *name,
					    ...)
{
	char full[NAME_LENGTH];
	va_list args;
	va_start(args, name);
	vsnprintf(full, sizeof(full), name, args);
	va_end(args);
	return vector(weights, SMALTI_F32, 1, (const int64_t[]){count}, full);
}

struct smalti_weight *smalti_weights_rows(struct smalti_weights *weights, int64_t rows, int64_t columns,
					  const char *name)
{
	return vector(weights, SMALTI_F32, 2, (const int64_t[]){rows, columns}, name);
}

bool smalti_weight_is_int8(const struct smalti_weight *weight)
{
	return weight && weight->source.kind == SMALTI_WEIGHT_INT8;
}

/* Tells whether the file has all parts as rows of int8. */
static bool stored_as_int8(const struct smalti_weight *weight)
{
	int count = 0;
	for (int i = 0; i < weight->source.parts; i++)
		count += weight->source.part[i].coding == &smalti_coding_i8;
	return count && count == weight->source.parts;
}

struct smalti_weight *smalti_weights_factor(struct smalti_weights *weights, int64_t rows, int64_t columns,
					    enum smalti_dtype *dtype, const char *name)
{
	struct smalti_weight *weight = smalti_weights_table(weights, rows, columns, dtype, name);
	if (!weight || !(weights->checkpoint->wants_int8 || stored_as_int8(weight)))
		return weight;
	weights->bytes -= made_bytes(weight);
	weight->raw = false;
	weight->source.kind = SMALTI_WEIGHT_INT8;
	weight->source.in = columns;
	weight->source.out = rows;
	*dtype = SMALTI_I8;
	return whole(weight);
}

struct smalti_weight *smalti_weights_table(struct smalti_weights *weights, int64_t rows, int64_t columns,
					   enum smalti_dtype *dtype, const char *name)
{
	struct smalti_weight *weight = add(weights, SMALTI_WEIGHT_VECTOR);
	if (!weight)
		return NULL;
	add_part(weight, 2, (const int64_t[]){rows, columns}, name);
	const bool made = weight->source.part[0].coding || weight->source.merge[0];
	weight->raw = !made;
	weight->source.kind = made ? SMALTI_WEIGHT_TABLE : SMALTI_WEIGHT_VECTOR;
	*dtype = made ? SMALTI_F32 : weight->source.part[0].dtype;
	return whole(weight);
}

/* Stacks here: too many parts for one task, and small. */
struct smalti_weight *smalti_weights_stack(struct smalti_weights *weights, int64_t count, int64_t rows,
					   int64_t columns, const char *name)
{
	struct smalti_weight *weight = add(weights, SMALTI_WEIGHT_VECTOR);
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
			smalti_tensor_values(&view, 0, rows, all + i * elements);
	}
	weight->source.parts = 1;
	weight->source.part[0] =
	    (struct smalti_tensor_view){.dtype = SMALTI_F32,
					.rank = 1,
					.shape = {count * elements},
					.data = all,
					.bytes = count * elements * (int64_t)sizeof(float)};
	return whole(weight);
}

static struct smalti_weight *whole_matrix(struct smalti_weight *weight, enum smalti_dtype compute, int64_t in,
					  int64_t out)
{
	weight->source.in = in;
	weight->source.out = out;
	return whole_for(weight, compute);
}

void smalti_weights_bear_w8a8(struct smalti_weights *weights, bool bear)
{
	weights->bears_w8a8 = bear;
}

struct smalti_linear smalti_weights_linear(struct smalti_weights *weights, int64_t in, int64_t out, bool bias,
					   const char *prefix, const char *const parts[3])
{
	struct smalti_weight *weight = add(weights, SMALTI_WEIGHT_MATRIX);
	struct smalti_weight *vector_of_biases = bias ? add(weights, SMALTI_WEIGHT_VECTOR) : NULL;
	if (!weight || (bias && !vector_of_biases))
		return (struct smalti_linear){0};
	int count = 0;
	while (count < SMALTI_WEIGHT_PARTS && parts[count])
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
	linear.w8a8 = weights->bears_w8a8 && !weights->parameters && weights->checkpoint->wants_w8a8;
	if (linear.w8a8 || stored_as_int8(weight))
		weight->source.kind = SMALTI_WEIGHT_INT8;
	linear.weight = whole_matrix(weight, weights->compute, in, out);
	linear.bias = bias ? whole_for(vector_of_biases, weights->compute) : NULL;
	return linear;
}

struct smalti_linear smalti_weights_reshaped(struct smalti_weights *weights, const int64_t *shape, int rank,
					     enum smalti_dtype compute, const char *prefix)
{
	struct smalti_weight *weight = add(weights, SMALTI_WEIGHT_MATRIX);
	if (!weight)
		return (struct smalti_linear){0};
	weight->fixed = true;
	struct smalti_linear linear = {.in = 1, .out = shape[0], .compute = compute};
	for (int i = 1; i < rank; i++)
		linear.in *= shape[i];
	char name[NAME_LENGTH];
	snprintf(name, sizeof(name), "%s.weight", prefix);
	add_part(weight, rank, shape, name);
	linear.weight = whole_matrix(weight, compute, linear.in, linear.out);
	snprintf(name, sizeof(name), "%s.bias", prefix);
	linear.bias = vector(weights, compute, 1, shape, name);
	return linear;
}

struct smalti_linear smalti_weights_linear_1x1(struct smalti_weights *weights, int64_t in, int64_t out,
					       const char *prefix)
{
	return smalti_weights_reshaped(weights, (const int64_t[]){out, in, 1, 1}, 4, weights->compute,
				       prefix);
}

struct smalti_linear smalti_weights_given(struct smalti_weights *weights, int64_t in, int64_t out,
					  enum smalti_dtype compute, float *values)
{
	struct smalti_weight *weight = add(weights, SMALTI_WEIGHT_MATRIX);
	if (!weight) {
		free(values);
		return (struct smalti_linear){0};
	}
	weight->fixed = true;
	weight->host = values;
	weight->source.parts = 1;
	weight->source.part[0] = (struct smalti_tensor_view){.name = "adapter",
							     .dtype = SMALTI_F32,
							     .rank = 2,
							     .shape = {out, in},
							     .data = values,
							     .bytes = out * in * (int64_t)sizeof(float)};
	return (struct smalti_linear){
	    .weight = whole_matrix(weight, compute, in, out), .in = in, .out = out, .compute = compute};
}

struct smalti_kernel smalti_weights_conv(struct smalti_weights *weights, int64_t in, int64_t out, int stride,
					 const char *prefix)
{
	struct smalti_weight *weight = add(weights, SMALTI_WEIGHT_KERNEL);
	if (!weight)
		return (struct smalti_kernel){0};
	char name[NAME_LENGTH];
	snprintf(name, sizeof(name), "%s.weight", prefix);
	add_part(weight, 4, (const int64_t[]){out, in, 3, 3}, name);
	struct smalti_kernel kernel = {.in = in, .out = out, .stride = stride};
	weight->source.stride = stride;
	kernel.weight = whole_matrix(weight, weights->compute, in, out);
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

/* Makes a slice of each part of `of`. */
static struct smalti_weight *slice_of(const struct smalti_weight *of, const struct smalti_slice *slice)
{
	struct smalti_weight *weight = add(of->weights, of->source.kind);
	if (!weight)
		return NULL;
	weight->fixed = weight->slice = true;
	weight->source.parts = of->source.parts;
	weight->source.first_out = of->source.first_out + slice->first_out;
	for (int i = 0; i < of->source.parts; i++) {
		struct smalti_tensor_view *part = &weight->source.part[i];
		*part = of->source.part[i];
		weight->source.merge[i] = of->source.merge[i];
		if (of->weights->parameters) {
			smalti_weight_take_parameter(weight, of, i, slice->first_out + slice->first_in);
			continue;
		}
		smalti_tensor_cut(part, slice->first_out, slice->out);
	}
	return weight;
}

struct smalti_linear smalti_weights_slice(const struct smalti_linear *of, const struct smalti_slice *slice,
					  bool bias)
{
	const struct smalti_slice vector = {slice->first_out, slice->out, 0, 1};
	struct smalti_linear linear = {.in = slice->in,
				       .out = slice->out * of->weight->source.parts,
				       .compute = of->compute,
				       .w8a8 = of->w8a8};
	struct smalti_weight *weight = slice_of(of->weight, slice);
	if (!weight)
		return (struct smalti_linear){0};
	weight->source.row = slice->in < of->in ? of->in : 0;
	weight->source.first_in = slice->first_in;
	linear.weight = whole_matrix(weight, of->compute, linear.in, linear.out);
	weight = bias && of->bias ? slice_of(of->bias, &vector) : NULL;
	linear.bias = weight ? whole_for(weight, of->compute) : NULL;
	return linear;
}

struct smalti_weight *smalti_weights_table_rows(const struct smalti_weight *table, int64_t first,
						int64_t rows, int64_t columns)
{
	const struct smalti_slice slice = {first, rows, 0, columns};
	struct smalti_weight *weight = slice_of(table, &slice);
	if (!weight)
		return NULL;
	weight->raw = table->raw;
	weight->source.in = columns;
	weight->source.out = rows;
	return whole(weight);
}

bool smalti_weight_is_raw(const struct smalti_weight *weight)
{
	return weight && weight->raw;
}

struct smalti_tile *smalti_weight_part(struct smalti_weight *weight, int index)
{
	if (index >= weight->source.parts)
		return NULL;
	if (weight->weights->parameters)
		return smalti_weight_step_part(weight, index);
	const struct smalti_tensor_view *part = smalti_weight_view(weight, index);
	if (!weight->part[index])
		weight->part[index] =
		    smalti_tile_over(weight->weights->task_group, 1, part->bytes, part->data);
	return weight->part[index];
}

/* Makes a large weight's form by its own task, so that readers need not wait for each other. It is the CPUs'
 * form, so it is left out where devices do everything. */
static void prepare(struct smalti_weight *weight, struct smalti_tile *after)
{
	struct smalti_task_group *task_group = weight->weights->task_group;
	if (weight->source.kind == SMALTI_WEIGHT_VECTOR || smalti_devices_alone(task_group->session))
		return;
	smalti_task_group_behind(task_group, weight->weights->transient ? after : NULL);
	smalti_insert(prepare, task_group, (.weight = weight->tile), .bytes = made_bytes(weight));
	smalti_task_group_behind(task_group, NULL);
}

struct smalti_tile *smalti_weight_tile_after(struct smalti_weight *weight, struct smalti_tile *after)
{
	if (!weight || weight->tile)
		return weight ? weight->tile : NULL;
	if (smalti_weight_is_raw(weight))
		return smalti_weight_part(weight, 0);
	weight->tile = smalti_tile_of_forms(weight->weights->task_group, &weight->forms);
	prepare(weight, after);
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
	return &weight->source.part[index];
}

void smalti_weight_read_ahead(struct smalti_task_group *task_group, struct smalti_weight *weight,
			      struct smalti_tile *after)
{
	struct smalti_tile *tile = smalti_weight_tile_after(weight, after);
	if (!weight->raw)
		return;
	smalti_task_group_behind(task_group, after);
	smalti_insert(read_ahead, task_group, (.weight = tile), .bytes = weight->source.part[0].bytes);
	smalti_task_group_behind(task_group, NULL);
}

void smalti_weight_drop(struct smalti_task_group *task_group, struct smalti_weight *weight)
{
	if (!weight->raw) {
		smalti_weight_done(weight);
		return;
	}
	smalti_insert(drop_pages, task_group, (.weight = smalti_weight_tile(weight)),
		      .bytes = weight->source.part[0].bytes);
}
