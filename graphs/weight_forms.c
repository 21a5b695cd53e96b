/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/weight_forms.h"
#include "base/file.h"
#include "kernels/bias_form.h"
#include "kernels/conv.h"
#include "kernels/kernels.h"
#include "kernels/matmul.h"

enum { TAPS = 9 };

static int64_t elements(const struct smalti_tensor_view *part)
{
	return part->bytes / smalti_dtype_bytes(part->dtype);
}

static int64_t all_elements(const struct smalti_weight_source *source)
{
	int64_t count = 0;
	for (int i = 0; i < source->parts; i++)
		count += elements(&source->part[i]);
	return count;
}

static void convert_parts(const struct smalti_weight_source *source, enum smalti_dtype to, char *memory)
{
	for (int i = 0; i < source->parts; i++) {
		const struct smalti_tensor_view *part = &source->part[i];
		smalti_kernels()->convert(elements(part), part->dtype, part->data, to, memory);
		memory += elements(part) * smalti_dtype_bytes(to);
	}
}

static int pack_matrix(const struct smalti_weight_source *source, struct smalti_packed packed,
		       struct smalti_error *error)
{
	struct smalti_weight_part parts[SMALTI_WEIGHT_PARTS];
	for (int i = 0; i < source->parts; i++) {
		const struct smalti_tensor_view *part = &source->part[i];
		parts[i] = (struct smalti_weight_part){part->data, part->dtype, elements(part) / source->in};
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

/* Copies a part: its columns alone, with its adapters merged. */
static int copy_part(const struct smalti_weight_source *source, int i, struct smalti_tensor_view *copy,
		     char *to, struct smalti_error *error)
{
	const int64_t rows = elements(&source->part[i]) / source->in;
	const int64_t row = source->row ? source->row : source->in;
	const int64_t size = smalti_dtype_bytes(copy->dtype);
	const char *from = copy->data;
	copy->data = to;
	if (source->merge[i]) {
		copy->dtype = SMALTI_F32;
		copy->bytes = rows * source->in * (int64_t)sizeof(float);
		return smalti_merge_rows(source->merge[i], source->first_out, rows, source->first_in,
					 source->in, (float *)to, error);
	}
	for (int64_t r = 0; r < rows; r++)
		memcpy(to + r * source->in * size, from + r * row * size, (size_t)(source->in * size));
	return 0;
}

/* Makes the form from copies of the parts. */
static int form_copied(const struct smalti_weight_source *source, enum smalti_device_kind device,
		       void *memory, int64_t bytes, struct smalti_error *error)
{
	struct smalti_weight_source copied = *source;
	char *copy = smalti_calloc(all_elements(source), sizeof(float), error), *to = copy;
	int status = copy ? 0 : -1;
	for (int i = 0; i < source->parts && status == 0; i++) {
		status = copy_part(source, i, &copied.part[i], to, error);
		to += elements(&source->part[i]) * (int64_t)sizeof(float);
	}
	if (status == 0)
		status = form(&copied, device, memory, bytes, error);
	free(copy);
	return status;
}

static bool is_copied(const struct smalti_weight_source *source)
{
	bool copied = source->row > source->in;
	for (int i = 0; i < source->parts; i++)
		copied = copied || source->merge[i];
	return copied;
}

static int make(const void *weight, enum smalti_device_kind device, void *memory, int64_t bytes,
		struct smalti_error *error)
{
	const struct smalti_weight_source *source = weight;
	const int status = is_copied(source) ? form_copied(source, device, memory, bytes, error)
					     : form(source, device, memory, bytes, error);
	if (status == 0 && source->kind != SMALTI_WEIGHT_VECTOR && source->row <= source->in)
		drop_pages(source);
	return status;
}

/* Returns the bytes of a CPU's form; -1 with an error. */
static int64_t cpu_bytes(const struct smalti_weight_source *source, struct smalti_error *error)
{
	if (source->kind == SMALTI_WEIGHT_VECTOR)
		return all_elements(source) * (int64_t)sizeof(float);
	if (source->kind == SMALTI_WEIGHT_KERNEL)
		return smalti_conv_packed_bytes(source->in, source->out, source->stride, source->compute,
						error);
	return smalti_matmul_packed_bytes(source->in, source->out, source->compute, error);
}

static int64_t device_bytes(const struct smalti_weight_source *source)
{
	const int64_t count = all_elements(source);
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
