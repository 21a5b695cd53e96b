/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <dnnl.h>
#include <stdint.h>

/* The differences between the C APIs of oneDNN 2 and 3, in the form of 3; nothing else knows the version. A
 * layout (memory descriptor) is made by a function below and freed with smalti_layout_free(). Functions that
 * make one leave NULL where they fail. */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t smalti_layout;
typedef const_dnnl_memory_desc_t smalti_const_layout;
#else
typedef dnnl_memory_desc_t *smalti_layout;
typedef const dnnl_memory_desc_t *smalti_const_layout;
#endif

dnnl_status_t smalti_layout_by_tag(smalti_layout *layout, int axes, const dnnl_dims_t dims,
				   dnnl_data_type_t type, dnnl_format_tag_t tag);
dnnl_status_t smalti_layout_by_strides(smalti_layout *layout, int axes, const dnnl_dims_t dims,
				       dnnl_data_type_t type, const dnnl_dims_t strides);
/* Lays out a part of `whole` of extents `dims`, from `offsets` on. */
dnnl_status_t smalti_layout_part(smalti_layout *layout, smalti_const_layout whole, const dnnl_dims_t dims,
				 const dnnl_dims_t offsets);
dnnl_status_t smalti_layout_copy(smalti_layout *layout, smalti_const_layout from);
void smalti_layout_free(smalti_layout layout);
/* Returns the number of axes and their extents. */
dnnl_status_t smalti_layout_dims(smalti_const_layout layout, int *axes, dnnl_dims_t dims);

dnnl_status_t smalti_onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha);
/* Adds the result's earlier values. */
dnnl_status_t smalti_onednn_append_sum(dnnl_post_ops_t ops);

/* Describes y = x by weights, plus `bias` if it is not NULL. */
dnnl_status_t smalti_onednn_matmul(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
				   smalti_const_layout x, smalti_const_layout weights,
				   smalti_const_layout bias, smalti_const_layout y,
				   const_dnnl_primitive_attr_t attributes);

/* Steps between outputs, and zeros before and after each axis. */
struct smalti_onednn_steps {
	dnnl_dims_t strides, before, after;
};
dnnl_status_t smalti_onednn_convolution(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
					smalti_const_layout x, smalti_const_layout weights,
					smalti_const_layout bias, smalti_const_layout y,
					const struct smalti_onednn_steps *steps,
					const_dnnl_primitive_attr_t attributes);
