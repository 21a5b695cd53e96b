/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The sizes that models of a resolution are trained at, one for each aspect ratio. An image belongs to the
 * bin whose ratio is nearest to its height / width (docs/reference.md 7.1, 7.2). */
struct smalti_bin {
	double ratio; /* height / width, rounded: images are compared with this */
	int64_t height, width;
};

/* Training and feature extraction have all 40 bins of each resolution 256, 512, 1024, 2048, 2880, and of 128,
 * for small models, those with sides that are multiples of 16. The generating pipelines leave out 7 bins of
 * 256, 512 and 1024, and have none of 128 and 2880. */
enum smalti_bins { SMALTI_BINS_TRAINING, SMALTI_BINS_PIPELINE };

enum { SMALTI_BINS_MAX = 40 };

/* Lists the bins of a resolution in ascending order of their ratios. Returns their number, or -1 (EINVAL) for
 * a resolution without bins. */
int smalti_bins_list(int64_t resolution, enum smalti_bins bins, struct smalti_bin list[SMALTI_BINS_MAX],
		     struct smalti_error *error);

/* Finds the bin of an image; of two that are equally near it takes the smaller ratio. EINVAL for a resolution
 * without bins, or a side below 1. */
int smalti_bins_nearest(int64_t resolution, enum smalti_bins bins, int64_t height, int64_t width,
			struct smalti_bin *bin, struct smalti_error *error);
