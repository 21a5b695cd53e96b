/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights as layers want them: each call adds what one layer has. */
#include "graphs/weight_parts.h"

#include <stdarg.h>

enum { NAME_LENGTH = 160 };

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
	weights->bytes += smalti_weight_made_bytes(weight);
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

/* Returns the dtype of the 8-bit rows that all parts have in the file; else F32. What adapters change is
 * rounded to integers again, but not to fp8. */
static enum smalti_dtype stored_rows8(const struct smalti_weight *weight)
{
	const struct smalti_weight_source *source = &weight->source;
	const struct smalti_coding *coding = source->part[0].coding;
	enum smalti_dtype rows8 = coding ? coding->rows8 : SMALTI_F32;
	for (int i = 0; i < source->parts; i++)
		if (source->part[i].coding != coding || (source->merge[i] && rows8 != SMALTI_I8))
			rows8 = SMALTI_F32;
	return rows8;
}

/* Makes the weight 8-bit rows: integers if these are wanted, else what the file has. False: it has none,
 * and the weight stays as it is. */
static bool make_rows8(struct smalti_weight *weight, bool integers)
{
	weight->source.rows8 = integers ? SMALTI_I8 : stored_rows8(weight);
	if (!smalti_is_rows8(weight->source.rows8))
		return false;
	weight->source.kind = SMALTI_WEIGHT_ROWS8;
	return true;
}

struct smalti_weight *smalti_weights_factor(struct smalti_weights *weights, int64_t rows, int64_t columns,
					    enum smalti_dtype *dtype, const char *name)
{
	struct smalti_weight *weight = smalti_weights_table(weights, rows, columns, dtype, name);
	if (!weight || !make_rows8(weight, weights->checkpoint->wants_int8))
		return weight;
	weights->bytes -= smalti_weight_made_bytes(weight);
	weight->raw = false;
	weight->source.in = columns;
	weight->source.out = rows;
	*dtype = weight->source.rows8;
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
	make_rows8(weight, linear.w8a8);
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
	weight->source.rows8 = of->source.rows8;
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
