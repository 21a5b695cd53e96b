/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The sizes that models of a resolution are trained at, one per aspect ratio: every image belongs to the
 * bin whose ratio is nearest to its own height / width (docs/reference.md 7.1, 7.2). */
struct smalti_bin {
	double ratio; /* height / width, rounded: what images are compared with */
	int64_t height, width;
};

/* Whose bins: training and feature extraction have all 40 of each resolution 256, 512, 1024, 2048, 2880, and
 * of 128, for small models, those whose sides are multiples of 16; the generating pipelines leave out 7 of
 * those of 256, 512 and 1024, and have none of 128 and 2880. */
enum smalti_bins { SMALTI_BINS_TRAINING, SMALTI_BINS_PIPELINE };

enum { SMALTI_BINS_MAX = 40 };

/* The bins of a resolution in ascending order of their ratios: how many there are, or -1 (EINVAL) for a
 * resolution without bins. */
int smalti_bins_list(int64_t resolution, enum smalti_bins bins, struct smalti_bin list[SMALTI_BINS_MAX],
		     struct smalti_error *error);

/* The bin of an image; of two that are equally near the one with the smaller ratio. EINVAL for a resolution
 * without bins, or a side below 1. */
int smalti_bins_nearest(int64_t resolution, enum smalti_bins bins, int64_t height, int64_t width,
			struct smalti_bin *bin, struct smalti_error *error);
