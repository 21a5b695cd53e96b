/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/onednn_api.h"

#include <stdlib.h>
#include <string.h>

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t smalti_layout_by_tag(smalti_layout *layout, int axes, const dnnl_dims_t dims,
				   dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	*layout = NULL;
	return dnnl_memory_desc_create_with_tag(layout, axes, dims, type, tag);
}

dnnl_status_t smalti_layout_by_strides(smalti_layout *layout, int axes, const dnnl_dims_t dims,
				       dnnl_data_type_t type, const dnnl_dims_t strides)
{
	*layout = NULL;
	return dnnl_memory_desc_create_with_strides(layout, axes, dims, type, strides);
}

dnnl_status_t smalti_layout_part(smalti_layout *layout, smalti_const_layout whole, const dnnl_dims_t dims,
				 const dnnl_dims_t offsets)
{
	*layout = NULL;
	return dnnl_memory_desc_create_submemory(layout, whole, dims, offsets);
}

dnnl_status_t smalti_layout_copy(smalti_layout *layout, smalti_const_layout from)
{
	*layout = NULL;
	return dnnl_memory_desc_clone(layout, from);
}

void smalti_layout_free(smalti_layout layout)
{
	if (layout)
		dnnl_memory_desc_destroy(layout);
}

dnnl_status_t smalti_layout_dims(smalti_const_layout layout, int *axes, dnnl_dims_t dims)
{
	const dnnl_dims_t *extents = NULL;
	dnnl_status_t status = dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, axes);
	if (!status)
		status = dnnl_memory_desc_query(layout, dnnl_query_dims, (void *)&extents);
	if (!status)
		memcpy(dims, *extents, (size_t)*axes * sizeof((*extents)[0]));
	return status;
}

dnnl_status_t smalti_onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha)
{
	return dnnl_post_ops_append_eltwise(ops, kind, alpha, 0.f);
}

dnnl_status_t smalti_onednn_append_sum(dnnl_post_ops_t ops)
{
	return dnnl_post_ops_append_sum(ops, 1.f, 0, dnnl_data_type_undef);
}

dnnl_status_t smalti_onednn_matmul(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
				   smalti_const_layout x, smalti_const_layout weights,
				   smalti_const_layout bias, smalti_const_layout y,
				   const_dnnl_primitive_attr_t attributes)
{
	return dnnl_matmul_primitive_desc_create(description, engine, x, weights, bias, y, attributes);
}

dnnl_status_t smalti_onednn_convolution(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
					smalti_const_layout x, smalti_const_layout weights,
					smalti_const_layout bias, smalti_const_layout y,
					const struct smalti_onednn_steps *steps,
					const_dnnl_primitive_attr_t attributes)
{
	const dnnl_dims_t dense = {0};
	return dnnl_convolution_forward_primitive_desc_create(
	    description, engine, dnnl_forward_inference, dnnl_convolution_direct, x, weights, bias, y,
	    steps->strides, dense, steps->before, steps->after, attributes);
}

#else

/* Keeps a layout if `status`, of its filling, is success. */
static dnnl_status_t keep(smalti_layout *layout, const dnnl_memory_desc_t *filled, dnnl_status_t status)
{
	*layout = NULL;
	if (status)
		return status;
	*layout = malloc(sizeof(**layout));
	if (!*layout)
		return dnnl_out_of_memory;
	**layout = *filled;
	return dnnl_success;
}

dnnl_status_t smalti_layout_by_tag(smalti_layout *layout, int axes, const dnnl_dims_t dims,
				   dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	dnnl_memory_desc_t filled;
	return keep(layout, &filled, dnnl_memory_desc_init_by_tag(&filled, axes, dims, type, tag));
}

dnnl_status_t smalti_layout_by_strides(smalti_layout *layout, int axes, const dnnl_dims_t dims,
				       dnnl_data_type_t type, const dnnl_dims_t strides)
{
	dnnl_memory_desc_t filled;
	return keep(layout, &filled, dnnl_memory_desc_init_by_strides(&filled, axes, dims, type, strides));
}

dnnl_status_t smalti_layout_part(smalti_layout *layout, smalti_const_layout whole, const dnnl_dims_t dims,
				 const dnnl_dims_t offsets)
{
	dnnl_memory_desc_t filled;
	return keep(layout, &filled, dnnl_memory_desc_init_submemory(&filled, whole, dims, offsets));
}

dnnl_status_t smalti_layout_copy(smalti_layout *layout, smalti_const_layout from)
{
	return keep(layout, from, dnnl_success);
}

void smalti_layout_free(smalti_layout layout)
{
	free(layout);
}

dnnl_status_t smalti_layout_dims(smalti_const_layout layout, int *axes, dnnl_dims_t dims)
{
	*axes = layout->ndims;
	memcpy(dims, layout->dims, (size_t)*axes * sizeof(dims[0]));
	return dnnl_success;
}

dnnl_status_t smalti_onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha)
{
	return dnnl_post_ops_append_eltwise(ops, 1.f, kind, alpha, 0.f);
}

dnnl_status_t smalti_onednn_append_sum(dnnl_post_ops_t ops)
{
	return dnnl_post_ops_append_sum(ops, 1.f);
}

dnnl_status_t smalti_onednn_matmul(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
				   smalti_const_layout x, smalti_const_layout weights,
				   smalti_const_layout bias, smalti_const_layout y,
				   const_dnnl_primitive_attr_t attributes)
{
	dnnl_matmul_desc_t matmul;
	dnnl_status_t status = dnnl_matmul_desc_init(&matmul, x, weights, bias, y);
	return status ? status : dnnl_primitive_desc_create(description, &matmul, attributes, engine, NULL);
}

dnnl_status_t smalti_onednn_convolution(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
					smalti_const_layout x, smalti_const_layout weights,
					smalti_const_layout bias, smalti_const_layout y,
					const struct smalti_onednn_steps *steps,
					const_dnnl_primitive_attr_t attributes)
{
	dnnl_convolution_desc_t convolution;
	dnnl_status_t status = dnnl_convolution_forward_desc_init(
	    &convolution, dnnl_forward_inference, dnnl_convolution_direct, x, weights, bias, y,
	    steps->strides, steps->before, steps->after);
	return status ? status
		      : dnnl_primitive_desc_create(description, &convolution, attributes, engine, NULL);
}

#endif
