/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/onednn.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

enum {
	BLOCK = 64,      /* a multiple of every block that oneDNN's layouts have along a weight's outputs */
	STAGED = 1 << 18 /* elements wanted at a time */
};

/* The reading position in the stacked parts. */
struct reader {
	const struct smalti_weight_part *part;
	int64_t row, row_length;
};

static void read_rows(struct reader *reader, int64_t rows, float *to)
{
	while (rows) {
		const struct smalti_weight_part *part = reader->part;
		int64_t take = part->rows - reader->row < rows ? part->rows - reader->row : rows;
		const char *from = (const char *)part->data +
				   reader->row * reader->row_length * smalti_dtype_bytes(part->dtype);
		smalti_kernels()->convert(take * reader->row_length, part->dtype, from, SMALTI_F32, to);
		to += take * reader->row_length;
		rows -= take;
		reader->row += take;
		if (reader->row == part->rows) {
			reader->part++;
			reader->row = 0;
		}
	}
}

/* Rounds here, as oneDNN rounds nothing where the layout keeps f32. */
static void round_values(enum smalti_dtype dtype, float *values, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		values[i] = smalti_round(dtype, values[i]);
}

struct move {
	smalti_const_layout from_layout, to_layout;
	void *from, *to;
};

static dnnl_status_t move(const struct move *move, dnnl_engine_t engine, dnnl_stream_t stream)
{
	dnnl_primitive_desc_t description = NULL;
	dnnl_primitive_t primitive = NULL;
	dnnl_memory_t from = NULL, to = NULL;
	dnnl_status_t status = dnnl_reorder_primitive_desc_create(&description, move->from_layout, engine,
								  move->to_layout, engine, NULL);
	if (!status)
		status = dnnl_primitive_create(&primitive, description);
	if (!status)
		status = dnnl_memory_create(&from, move->from_layout, engine, move->from);
	if (!status)
		status = dnnl_memory_create(&to, move->to_layout, engine, move->to);
	if (!status) {
		const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
		status = dnnl_primitive_execute(primitive, stream, 2, arguments);
	}
	dnnl_memory_destroy(from);
	dnnl_memory_destroy(to);
	dnnl_primitive_destroy(primitive);
	dnnl_primitive_desc_destroy(description);
	return status;
}

/* Moves the f32 values at `from`, dense with strides `plain`, to rows [origin, …) along `axis` of `packed`.
 */
static int reorder(smalti_const_layout packed, int axis, int64_t origin, int64_t rows,
		   const dnnl_dims_t plain, float *from, void *to, struct smalti_error *error)
{
	ALONE_IN_ONEDNN;
	dnnl_engine_t engine = smalti_onednn_engine(error);
	dnnl_stream_t stream = smalti_onednn_stream(error);
	if (!engine || !stream)
		return -1;
	int axes;
	dnnl_dims_t dims, offsets = {0};
	smalti_layout source = NULL, target = NULL;
	dnnl_status_t status = smalti_layout_dims(packed, &axes, dims);
	dims[axis] = rows;
	offsets[axis] = origin;
	if (!status)
		status = smalti_layout_by_strides(&source, axes, dims, dnnl_f32, plain);
	if (!status)
		status = smalti_layout_part(&target, packed, dims, offsets);
	if (!status)
		status = move(&(struct move){source, target, from, to}, engine, stream);
	smalti_layout_free(source);
	smalti_layout_free(target);
	return smalti_onednn_check(status, "cannot pack weights", error);
}

int smalti_packed_check(struct smalti_packed packed, int64_t bytes, struct smalti_error *error)
{
	if (packed.bytes >= bytes)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "the packed form of a weight takes %lld bytes, and %lld were reserved for it",
			   (long long)bytes, (long long)packed.bytes);
}

int smalti_onednn_pack(smalti_const_layout packed, int axis, const dnnl_dims_t plain,
		       enum smalti_dtype compute, const struct smalti_weight_part *parts, int64_t first,
		       struct smalti_packed to, struct smalti_error *error)
{
	int axes;
	dnnl_dims_t dims;
	if (smalti_onednn_check(smalti_layout_dims(packed, &axes, dims), "no extents of weights", error))
		return -1;
	if (smalti_packed_check(to, (int64_t)dnnl_memory_desc_get_size(packed), error))
		return -1;
	const int64_t total = dims[axis];
	struct reader reader = {parts, first, plain[axis]};
	while (reader.row >= reader.part->rows)
		reader.row -= reader.part++->rows;
	int64_t chunk = STAGED / reader.row_length / BLOCK * BLOCK;
	if (chunk < BLOCK)
		chunk = BLOCK;
	int64_t staged = chunk < total ? chunk : total;
	if (!smalti_multiply(&staged, reader.row_length) || !smalti_multiply(&staged, sizeof(float)))
		return smalti_fail(error, SMALTI_ENOMEM, "a weight's rows do not fit in memory");
	float *stage = smalti_scratch(SMALTI_SCRATCH_CONVERT, staged, error);
	if (!stage)
		return -1;
	for (int64_t row = 0; row < total; row += chunk) {
		int64_t rows = total - row < chunk ? total - row : chunk;
		read_rows(&reader, rows, stage);
		if (compute != SMALTI_F32)
			round_values(compute, stage, rows * reader.row_length);
		if (reorder(packed, axis, row, rows, plain, stage, to.data, error))
			return -1;
	}
	return 0;
}
