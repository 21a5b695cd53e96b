/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* How kernels divide extents into blocks, and their workspace into parts. */

enum { LINE = 16 }; /* floats in a cache line */

/* A part of a workspace, and where its beginning is kept. */
struct part {
	float **begin;
	int64_t floats;
};

/* Lays the parts end to end, each from a cache line on; returns the floats needed. With a NULL scratch it
 * only counts. */
static inline int64_t workspace_layout(float *scratch, const struct part *parts, size_t count)
{
	int64_t used = 0;
	for (size_t i = 0; i < count; i++) {
		if (scratch)
			*parts[i].begin = scratch + used;
		used += smalti_round_up(parts[i].floats, LINE);
	}
	return used;
}
