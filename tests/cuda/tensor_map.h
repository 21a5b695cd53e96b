/* SPDX-License-Identifier: Apache-2.0
 *
 * The stand-in's form of CUDA's CUtensorMap: a tensor of three dimensions in a device's memory, elements
 * of two bytes, from which boxes are copied. */
#pragma once

#include <cstddef>
#include <cstdint>

struct alignas(16) standin_tensor_map {
	const char *base;    /* the device's */
	int64_t extents[3];  /* the first one of contiguous elements */
	int64_t strides[2];  /* bytes, of the others */
	int box[3], mixture; /* see kernels/device/hopper.h */
	char unused[56];

	/* Returns the bytes from the first to the last element. */
	size_t bytes() const
	{
		return static_cast<size_t>(2 * extents[0] + (extents[1] - 1) * strides[0] +
					   (extents[2] - 1) * strides[1]);
	}
};
static_assert(sizeof(standin_tensor_map) == 128, "as large as CUDA's");
