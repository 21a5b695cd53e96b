/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/weight_forms.h"
#include "base/file.h"
#include "base/fp8.h"
#include "base/int8.h"
#include "base/rows8.h"
#include "kernels/bias_form.h"
#include "kernels/conv.h"
#include "kernels/kernels.h"
#include "kernels/matmul.h"

#include <math.h>

enum { TAPS = 9 };

/* Returns the elements of part `i`, without those of columns that are left out. */
static int64_t elements(const struct smalti_weight_source *source, int i)
{
	const int64_t count = smalti_tensor_elements(&source->part[i]);
	return source->row ? count / source->row * source->in : count;
}

static int64_t all_elements(const struct smalti_weight_source *source)
{
	int64_t count = 0;
	for (int i = 0; i < source->parts; i++)
		count += elements(source, i);
	return count;
}

static void convert_parts(const struct smalti_weight_source *source, enum smalti_dtype to, char *memory)
{
	for (int i = 0; i < source->parts; i++) {
		const struct smalti_tensor_view *part = &source->part[i];
		smalti_kernels()->convert(elements(source, i), part->dtype, part->data, to, memory);
		memory += elements(source, i) * smalti_dtype_bytes(to);
	}
}

static int pack_matrix(const struct smalti_weight_source *source, struct smalti_packed packed,
		       struct smalti_error *error)
{
	struct smalti_weight_part parts[SMALTI_WEIGHT_PARTS];
	for (int i = 0; i < source->parts; i++) {
		const struct smalti_tensor_view *part = &source->part[i];
		parts[i] =
		    (struct smalti_weight_part){part->data, part->dtype, elements(source, i) / source->in};
	}
	return smalti_matmul_pack(source->in, source->out, source->compute, parts, source->parts, packed,
				  error);
}

/* Turns [out, in, 3, 3] into [out, 3, 3, in], both in `compute`. */
static void channels_last(const struct smalti_weight_source *source, const char *from, char *to)
{
	const int64_t size = smalti_dtype_bytes(source->compute);
	for (int64_t o = 0; o < source->out; o++)
		for (int64_t tap = 0; tap < TAPS; tap++)
			for (int64_t i = 0; i < source->in; i++, to += size)
				memcpy(to, from + ((o * source->in + i) * TAPS + tap) * size, (size_t)size);
}

static int plain_kernel(const struct smalti_weight_source *source, void *memory, struct smalti_error *error)
{
	SCOPED(free)
	char *converted =
	    smalti_calloc(TAPS * source->in * source->out, smalti_dtype_bytes(source->compute), error);
	if (!converted)
		return -1;
	convert_parts(source, source->compute, converted);
	channels_last(source, converted, memory);
	return 0;
}

static void make_vector(const struct smalti_weight_source *source, enum smalti_device_kind device,
			char *memory)
{
	convert_parts(source, SMALTI_F32, memory);
	if (device != SMALTI_DEVICE_CPU && source->compute != SMALTI_F32)
		convert_parts(source, source->compute, memory + smalti_bias_rounded(all_elements(source)));
}

/* Drops the pages of packed tensors from this process: their form in the file is not read again. */
static void drop_pages(const struct smalti_weight_source *source)
{
	for (int i = 0; i < source->parts; i++)
		smalti_map_drop(source->part[i].data, source->part[i].bytes);
}

static int form(const struct smalti_weight_source *source, enum smalti_device_kind device, void *memory,
		int64_t bytes, struct smalti_error *error)
{
	const struct smalti_packed packed = {memory, bytes};
	const bool cpu = device == SMALTI_DEVICE_CPU;
	if (source->kind == SMALTI_WEIGHT_MATRIX && cpu)
		return pack_matrix(source, packed, error);
	if (source->kind == SMALTI_WEIGHT_KERNEL && cpu)
		return smalti_conv_pack(source->in, source->out, source->stride, source->compute,
					source->part[0].data, source->part[0].dtype, packed, error);
	if (source->kind == SMALTI_WEIGHT_KERNEL)
		return plain_kernel(source, memory, error);
	if (source->kind == SMALTI_WEIGHT_VECTOR)
		make_vector(source, device, memory);
	else
		convert_parts(source, source->compute, memory);
	return 0;
}

/* Tells whether a part's values are not those in the file. */
static bool is_made(const struct smalti_weight_source *source, int i)
{
	return source->part[i].coding || source->merge[i];
}

/* Tells whether the parts cannot be read as they lie in the file. */
static bool needs_copy(const struct smalti_weight_source *source)
{
	bool copied = source->row > source->in;
	for (int i = 0; i < source->parts; i++)
		copied = copied || is_made(source, i);
	return copied;
}

/* Returns the dtype of a part's copy. */
static enum smalti_dtype copied_dtype(const struct smalti_weight_source *source, int i)
{
	return is_made(source, i) ? SMALTI_F32 : source->part[i].dtype;
}

static int64_t rows_of(const struct smalti_tensor_view *part)
{
	return part->rank ? part->shape[0] : 1;
}

/* Copies the columns of a slice, or all, of each row of part `i`; coded or changed ones become f32. `values`
 * has room for a row. */
static int copy_rows(const struct smalti_weight_source *source, int i, float *values, char *to,
		     struct smalti_error *error)
{
	const struct smalti_tensor_view *part = &source->part[i];
	const int64_t size = smalti_dtype_bytes(copied_dtype(source, i)), row = smalti_tensor_row(part);
	const int64_t columns = source->row ? source->in : row;
	if (source->merge[i])
		return smalti_merge_rows(source->merge[i], source->first_out, rows_of(part), source->first_in,
					 columns, (float *)to, error);
	for (int64_t r = 0; r < rows_of(part); r++, to += columns * size) {
		const char *from = (const char *)part->data + r * row * size;
		if (part->coding) {
			smalti_tensor_values(part, r, 1, values);
			from = (const char *)values;
		}
		memcpy(to, from + source->first_in * size, (size_t)(columns * size));
	}
	return 0;
}

/* Makes the form of copies of the parts. */
static int form_copied(const struct smalti_weight_source *source, enum smalti_device_kind device,
		       void *memory, int64_t bytes, struct smalti_error *error)
{
	struct smalti_weight_source copied = *source;
	int64_t size = 0, longest = 1;
	for (int i = 0; i < source->parts; i++) {
		size += elements(source, i) * smalti_dtype_bytes(copied_dtype(source, i));
		longest = smalti_max(longest, smalti_tensor_row(&source->part[i]));
	}
	SCOPED(free) char *copy = smalti_calloc(size, 1, error);
	SCOPED(free) float *values = smalti_calloc(longest, sizeof(*values), error);
	if (!copy || !values)
		return -1;
	char *to = copy;
	for (int i = 0; i < source->parts; i++) {
		copied.part[i].dtype = copied_dtype(source, i);
		copied.part[i].data = to;
		if (copy_rows(source, i, values, to, error) < 0)
			return -1;
		to += elements(source, i) * smalti_dtype_bytes(copied.part[i].dtype);
	}
	return form(&copied, device, memory, bytes, error);
}

/* Makes the rows of a table, which needs no copy of them. */
static int form_table(const struct smalti_weight_source *source, float *to, struct smalti_error *error)
{
	const struct smalti_tensor_view *part = &source->part[0];
	if (source->merge[0])
		return smalti_merge_rows(source->merge[0], source->first_out, rows_of(part), 0,
					 smalti_tensor_row(part), to, error);
	smalti_tensor_values(part, 0, rows_of(part), to);
	return 0;
}

static int fail_not_finite(const struct smalti_tensor_view *part, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_ECORRUPT, "tensor %s has values that are not finite", part->name);
}

/* Copies the codes of a row that are taken, and returns its scale. */
static int copy_codes(const struct smalti_weight_source *source, const struct smalti_tensor_view *part,
		      int64_t row, float *scale, char *to, struct smalti_error *error)
{
	const char *codes = (const char *)part->data + row * smalti_tensor_row(part) + source->first_in;
	*scale = smalti_tensor_scale(&part->scale, row);
	memcpy(to, codes, (size_t)source->in);
	if (source->rows8 == SMALTI_I8)
		return 0;
	const struct smalti_fp8 *format = source->rows8 == SMALTI_E4M3 ? &smalti_e4m3 : &smalti_e5m2;
	return smalti_fp8_are_finite(format, (const uint8_t *)to, source->in) ? 0
									      : fail_not_finite(part, error);
}

/* Makes an 8-bit row of the columns that are taken: the codes of the file, if it has such, else values
 * rounded to integers. */
static int form_row8(const struct smalti_weight_source *source, int i, int64_t row, float *values, char *to,
		     struct smalti_error *error)
{
	const struct smalti_tensor_view *part = &source->part[i];
	const int64_t columns = smalti_tensor_row(part);
	float scale;
	if (part->coding && part->coding->rows8 == source->rows8 && !source->merge[i]) {
		if (copy_codes(source, part, row, &scale, to, error) < 0)
			return -1;
	} else {
		if (!source->merge[i])
			smalti_tensor_values(part, row, 1, values);
		else if (smalti_merge_rows(source->merge[i], source->first_out + row, 1, 0, columns, values,
					   error) < 0)
			return -1;
		scale = smalti_int8_scale(values, columns);
		if (!isfinite(scale))
			return fail_not_finite(part, error);
		smalti_int8_round(values + source->first_in, source->in, scale, (int8_t *)to);
	}
	memcpy(to + smalti_rows8_scale_at(source->in), &scale, sizeof(scale));
	return 0;
}

static int form_rows8(const struct smalti_weight_source *source, char *to, int64_t bytes,
		      struct smalti_error *error)
{
	int64_t longest = 1;
	for (int i = 0; i < source->parts; i++)
		longest = smalti_max(longest, smalti_tensor_row(&source->part[i]));
	SCOPED(free) float *values = smalti_calloc(longest, sizeof(*values), error);
	if (!values)
		return -1;
	memset(to, 0, (size_t)bytes);
	for (int i = 0; i < source->parts; i++)
		for (int64_t r = 0; r < source->part[i].shape[0]; r++, to += smalti_rows8_stride(source->in))
			if (form_row8(source, i, r, values, to, error))
				return -1;
	return 0;
}

static int make(const void *weight, enum smalti_device_kind device, void *memory, int64_t bytes,
		struct smalti_error *error)
{
	const struct smalti_weight_source *source = weight;
	int status;
	if (source->kind == SMALTI_WEIGHT_TABLE)
		status = form_table(source, memory, error);
	else if (source->kind == SMALTI_WEIGHT_ROWS8)
		status = form_rows8(source, memory, bytes, error);
	else
		status = needs_copy(source) ? form_copied(source, device, memory, bytes, error)
					    : form(source, device, memory, bytes, error);
	if (status == 0 && source->kind != SMALTI_WEIGHT_VECTOR && !source->row)
		drop_pages(source);
	return status;
}

/* Returns the bytes of a CPU's form; -1 with an error. */
static int64_t cpu_bytes(const struct smalti_weight_source *source, struct smalti_error *error)
{
	if (source->kind == SMALTI_WEIGHT_VECTOR || source->kind == SMALTI_WEIGHT_TABLE)
		return all_elements(source) * (int64_t)sizeof(float);
	if (source->kind == SMALTI_WEIGHT_ROWS8)
		return source->out * smalti_rows8_stride(source->in);
	if (source->kind == SMALTI_WEIGHT_KERNEL)
		return smalti_conv_packed_bytes(source->in, source->out, source->stride, source->compute,
						error);
	return smalti_matmul_packed_bytes(source->in, source->out, source->compute, error);
}

static int64_t device_bytes(const struct smalti_weight_source *source)
{
	const int64_t count = all_elements(source);
	if (source->kind == SMALTI_WEIGHT_ROWS8)
		return source->out * smalti_rows8_stride(source->in);
	return source->kind == SMALTI_WEIGHT_VECTOR ? smalti_bias_bytes(count, source->compute)
						    : count * smalti_dtype_bytes(source->compute);
}

int smalti_weight_forms(const struct smalti_weight_source *source, struct smalti_tile_forms *forms,
			struct smalti_error *error)
{
	*forms = (struct smalti_tile_forms){.source = source, .make = make};
	for (int device = 0; device < SMALTI_DEVICE_KINDS; device++)
		forms->bytes[device] =
		    device == SMALTI_DEVICE_CPU ? cpu_bytes(source, error) : device_bytes(source);
	return forms->bytes[SMALTI_DEVICE_CPU] < 0 ? -1 : 0;
}
