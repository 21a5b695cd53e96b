/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv.h"
#include "kernels/cpu/onednn.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

enum { LONGEST = 1 << 24 }; /* sizes of all forms stay within 64 bits */

static int check(const struct smalti_conv *conv, struct smalti_error *error)
{
	int64_t min = conv->rows < conv->width ? conv->rows : conv->width;
	int64_t max = conv->rows > conv->width ? conv->rows : conv->width;
	if (min < 0 || conv->in < 1 || conv->out < 1 || max > LONGEST || conv->in > LONGEST ||
	    conv->out > LONGEST)
		return smalti_fail(error, SMALTI_EINVAL,
				   "convolution of %lld rows, %lld wide, %lld in, %lld out: expected 1 to %d",
				   (long long)conv->rows, (long long)conv->width, (long long)conv->in,
				   (long long)conv->out, LONGEST);
	if ((conv->stride != 1 && conv->stride != 2) || conv->width % conv->stride)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "convolution of width %lld by stride %d: expected stride 1, or 2 with an even width",
		    (long long)conv->width, conv->stride);
	return 0;
}

static int64_t input_rows(const struct smalti_conv *conv)
{
	return conv->stride == 1 ? conv->rows + 2 : 2 * conv->rows + 1;
}

/* Describes the convolution with weights in the layout `weights`; NULL: oneDNN chooses one. */
static dnnl_status_t describe_conv(const struct smalti_conv *conv, smalti_const_layout weights,
				   dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
				   dnnl_primitive_desc_t *description)
{
	dnnl_dims_t x_dims = {1, conv->in, input_rows(conv), conv->width};
	dnnl_dims_t y_dims = {1, conv->out, conv->rows, conv->width / conv->stride};
	dnnl_dims_t w_dims = {conv->out, conv->in, 3, 3}, bias_dims = {conv->out};
	const struct smalti_onednn_steps steps = {.strides = {conv->stride, conv->stride},
						  .before = {0, conv->stride == 1 ? 1 : 0},
						  .after = {0, 1}};
	dnnl_data_type_t type = smalti_onednn_type(conv->compute);
	smalti_layout x = NULL, any = NULL, y = NULL, bias = NULL;
	dnnl_status_t status = smalti_layout_by_tag(&x, 4, x_dims, type, dnnl_nhwc);
	if (!status)
		status = smalti_layout_by_tag(&any, 4, w_dims, type, dnnl_format_tag_any);
	if (!status)
		status = smalti_layout_by_tag(&bias, 1, bias_dims, dnnl_f32, dnnl_a);
	if (!status)
		status = smalti_layout_by_tag(&y, 4, y_dims, dnnl_f32, dnnl_nhwc);
	if (!status)
		status = smalti_onednn_convolution(description, engine, x, weights ? weights : any, bias, y,
						   &steps, attributes);
	smalti_layout_free(x);
	smalti_layout_free(any);
	smalti_layout_free(bias);
	smalti_layout_free(y);
	return status;
}

/* Returns the layout of a tag for weights; NULL where oneDNN has only reference code for it. */
static smalti_layout tagged_layout(const struct smalti_conv *conv, dnnl_format_tag_t tag,
				   dnnl_engine_t engine)
{
	dnnl_dims_t dims = {conv->out, conv->in, 3, 3};
	smalti_layout layout = NULL;
	dnnl_primitive_desc_t description = NULL;
	const char *implementation = "ref";
	if (!smalti_layout_by_tag(&layout, 4, dims, smalti_onednn_type(conv->compute), tag) &&
	    !describe_conv(conv, layout, engine, NULL, &description))
		dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&implementation);
	const bool is_fast = strncmp(implementation, "ref", 3) != 0; /* the description owns the name */
	dnnl_primitive_desc_destroy(description);
	if (is_fast)
		return layout;
	smalti_layout_free(layout);
	return NULL;
}

static smalti_layout chosen_layout(const struct smalti_conv *conv, dnnl_engine_t engine,
				   struct smalti_error *error)
{
	smalti_layout layout = NULL;
	dnnl_primitive_desc_t description = NULL;
	dnnl_status_t status = describe_conv(conv, NULL, engine, NULL, &description);
	if (!status)
		status = smalti_layout_copy(
		    &layout, dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0));
	dnnl_primitive_desc_destroy(description);
	smalti_onednn_check(status, "no layout for a convolution's weights", error);
	return layout;
}

/* Returns a convolution of some rows and width: weights are packed for any. */
static struct smalti_conv typical_conv(int64_t in, int64_t out, int stride, enum smalti_dtype compute)
{
	return (struct smalti_conv){16, 128, in, out, stride, compute, false};
}

/* Returns the layouts to try. oneDNN's choice depends on the width, and its code for another width may refuse
 * it and fall back to reference code. These serve every width, at 0 to 9 % less speed than its choice: in f32
 * for wide inputs, then for narrow ones; in bf16 with AMX, which is 10 times faster, then without. */
static const dnnl_format_tag_t *layout_tags(enum smalti_dtype operands)
{
	static const dnnl_format_tag_t avx2[] = {dnnl_OIhw8i8o, dnnl_Ohwi8o};
	static const dnnl_format_tag_t avx512[] = {dnnl_OIhw16i16o, dnnl_Ohwi16o};
	static const dnnl_format_tag_t bf16[] = {dnnl_OIhw16i16o2i, dnnl_OIhw8i16o2i};
	return operands == SMALTI_BF16 ? bf16 : smalti_isa() >= SMALTI_ISA_AVX512 ? avx512 : avx2;
}

static smalti_layout packed_layout(const struct smalti_conv *conv, struct smalti_error *error)
{
	ALONE_IN_ONEDNN;
	const struct smalti_conv typical =
	    typical_conv(conv->in, conv->out, conv->stride, smalti_onednn_operands(conv->compute));
	dnnl_engine_t engine = smalti_onednn_engine(error);
	if (!engine)
		return NULL;
	const dnnl_format_tag_t *tags = layout_tags(typical.compute);
	for (int i = 0; i < 2; i++) {
		smalti_layout layout = tagged_layout(&typical, tags[i], engine);
		if (layout)
			return layout;
	}
	return chosen_layout(&typical, engine, error);
}

static int describe(const void *context, dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
		    dnnl_primitive_desc_t *description, struct smalti_error *error)
{
	const struct smalti_conv *conv = context;
	smalti_layout weights = packed_layout(conv, error);
	if (!weights)
		return -1;
	dnnl_status_t status = conv->residual ? smalti_onednn_add_to_result(attributes) : dnnl_success;
	if (!status)
		status = describe_conv(conv, weights, engine, attributes, description);
	smalti_layout_free(weights);
	return smalti_onednn_check(status, "no such convolution", error);
}

/* Tells whether Winograd's form pays: where sums over the input channels are longer than its transforms. It
 * multiplies also 16-bit operands in f32, since rounding the transforms again would cost accuracy. With a
 * quarter of the products that is faster than direct sums in bf16 everywhere but on AMX. The rule ignores
 * rows and width, as packed weights do. */
static bool by_winograd(const struct smalti_conv *conv)
{
	const bool direct_is_faster = conv->compute == SMALTI_BF16 && smalti_isa() == SMALTI_ISA_AMX;
	return conv->in >= 16 && conv->stride == 1 && !direct_is_faster;
}

static int64_t winograd_bytes(const struct smalti_conv *conv)
{
	return smalti_kernels()->winograd_packed(conv->in, conv->out) * (int64_t)sizeof(float);
}

static int pack_for_winograd(const struct smalti_conv *conv, const void *weight, enum smalti_dtype dtype,
			     struct smalti_packed packed, struct smalti_error *error)
{
	if (smalti_packed_check(packed, winograd_bytes(conv), error))
		return -1;
	smalti_kernels()->winograd_pack(conv, weight, dtype, packed.data);
	return 0;
}

int64_t smalti_conv_packed_bytes(int64_t in, int64_t out, int stride, enum smalti_dtype compute,
				 struct smalti_error *error)
{
	const struct smalti_conv typical = typical_conv(in, out, stride, compute);
	if (check(&typical, error))
		return -1;
	if (by_winograd(&typical))
		return winograd_bytes(&typical);
	smalti_layout layout = packed_layout(&typical, error);
	const int64_t bytes = layout ? (int64_t)dnnl_memory_desc_get_size(layout) : -1;
	smalti_layout_free(layout);
	return bytes;
}

int smalti_conv_pack(int64_t in, int64_t out, int stride, enum smalti_dtype compute, const void *weight,
		     enum smalti_dtype dtype, struct smalti_packed packed, struct smalti_error *error)
{
	const struct smalti_conv typical = typical_conv(in, out, stride, compute);
	if (check(&typical, error))
		return -1;
	if (by_winograd(&typical))
		return pack_for_winograd(&typical, weight, dtype, packed, error);
	smalti_layout layout = packed_layout(&typical, error);
	if (!layout)
		return -1;
	const dnnl_dims_t plain = {in * 9, 9, 3, 1};
	struct smalti_weight_part part = {weight, dtype, out};
	const int status = smalti_onednn_pack(layout, 0, plain, compute, &part, 0, packed, error);
	smalti_layout_free(layout);
	return status;
}

static const float *widened(const struct smalti_conv *conv, const void *x, struct smalti_error *error)
{
	int64_t count = input_rows(conv), bytes;
	if (!smalti_multiply(&count, conv->width) || !smalti_multiply(&count, conv->in) ||
	    (bytes = count, !smalti_multiply(&bytes, 4))) {
		smalti_fail(error, SMALTI_ENOMEM, "a convolution's input does not fit in memory");
		return NULL;
	}
	float *wide = smalti_scratch(SMALTI_SCRATCH_CONVERT, bytes, error);
	if (wide)
		smalti_kernels()->convert(count, conv->compute, x, SMALTI_F32, wide);
	return wide;
}

int64_t smalti_conv_scratch(const struct smalti_conv *conv)
{
	return by_winograd(conv) ? smalti_kernels()->winograd_scratch(conv) * (int64_t)sizeof(float) : 0;
}

int64_t smalti_conv_slab(const struct smalti_conv *conv)
{
	const int64_t slab = smalti_kernels()->winograd_slab(conv);
	return by_winograd(conv) && slab < conv->rows ? slab : conv->rows;
}

static int convolve_by_winograd(const struct smalti_conv *conv, const void *x, const void *packed,
				const float *bias, float *y, struct smalti_error *error)
{
	float *scratch = smalti_scratch(SMALTI_SCRATCH_WINOGRAD, smalti_conv_scratch(conv), error);
	if (!scratch)
		return -1;
	smalti_kernels()->winograd(conv, x, packed, bias, y, scratch);
	return 0;
}

int smalti_conv(const struct smalti_conv *conv, const void *x, const void *packed, const float *bias,
		float *y, struct smalti_error *error)
{
	if (check(conv, error))
		return -1;
	if (!conv->rows || !conv->width)
		return 0;
	if (by_winograd(conv))
		return convolve_by_winograd(conv, x, packed, bias, y, error);
	struct smalti_conv product = *conv;
	product.compute = smalti_onednn_operands(conv->compute);
	if (product.compute != conv->compute && !(x = widened(conv, x, error)))
		return -1;
	struct smalti_onednn_key key = {{'c', conv->rows, conv->width, conv->in, conv->out, conv->stride,
					 (int64_t)product.compute, conv->residual}};
	struct smalti_onednn_argument arguments[] = {
	    {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, y}};
	return smalti_onednn_run(&key, describe, &product, arguments, 4, error);
}
