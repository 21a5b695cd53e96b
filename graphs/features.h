/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_FEATURES_H
#define SMALTI_GRAPHS_FEATURES_H

#include "codelets/codelets.h"
#include "graphs/weights.h"
#include "rt/grid.h"

/* A feature map [height, width, channels], f32, cut into bands of rows. Each band publishes its first and
 * last row for its neighbours, and its GroupNorm statistics; so a reader never touches a whole neighbour. */
struct smalti_features {
	struct smalti_cut cut;
	int64_t width, channels;
	struct smalti_tile **body, **top, **bottom; /* top of band 0 and bottom of the last one: NULL */
	struct smalti_tile *moments;                /* of the whole map; NULL when nobody normalises it */
};

/* An empty map in the bands of `cut`. */
struct smalti_features smalti_features_new(struct smalti_scope *scope, const struct smalti_cut *cut,
					   int64_t width, int64_t channels);
void smalti_features_release(struct smalti_features *map);

/* What a convolution does to its input first. */
struct smalti_conv_input {
	const struct smalti_affine *norm; /* GroupNorm and SiLU; NULL: none */
	int64_t groups;
	double epsilon;
	bool upsample; /* nearest ×2 */
};

/* A new map conv(f(x)) + bias, with statistics over y_groups (0: none). With a kernel of stride 2 the bands
 * and the width of x are even, and halved in y. */
struct smalti_features smalti_features_conv(struct smalti_scope *scope, const struct smalti_features *x,
					    const struct smalti_conv_input *input,
					    const struct smalti_kernel *kernel, enum smalti_dtype compute,
					    int64_t y_groups);
/* The map and *z, a 1×1 convolution of x itself without edges and statistics. Both of a band before the next
 * one, so that x goes band by band while they come. */
struct smalti_features smalti_features_fork(struct smalti_scope *scope, const struct smalti_features *x,
					    const struct smalti_conv_input *input,
					    const struct smalti_kernel *kernel, enum smalti_dtype compute,
					    int64_t y_groups, const struct smalti_linear *linear,
					    struct smalti_features *z);
/* A 1×1 convolution of x, without edges and statistics. */
struct smalti_features smalti_features_linear(struct smalti_scope *scope, const struct smalti_features *x,
					      const struct smalti_linear *linear);
/* y += conv(f(x)) + bias, where y is a map of the same bands; its edges and statistics are renewed. */
void smalti_features_conv_add(struct smalti_scope *scope, const struct smalti_features *x,
			      const struct smalti_conv_input *input, const struct smalti_kernel *kernel,
			      enum smalti_dtype compute, int64_t y_groups, struct smalti_features *y);
/* (Re)publishes edges and statistics of bodies that were written by other means. */
void smalti_features_publish(struct smalti_scope *scope, struct smalti_features *map, int64_t groups);

int64_t smalti_features_pixels(const struct smalti_features *map, int64_t band);

#endif
