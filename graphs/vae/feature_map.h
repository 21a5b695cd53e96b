/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "graphs/weights.h"
#include "rt/grid.h"

/* A feature map [height, width, channels], f32, cut into bands of rows. Each band publishes its first and
 * last row for its neighbours, and its GroupNorm statistics; so a reader never touches a whole neighbour.
 * Tiles are made when a band is first written. A map may have fewer of them than bands: then it is a window
 * over the map, in which band b takes the place of band b − slots. A writer waits for the readers of the band
 * that was there, so a window bounds the memory in any order of tasks. */
struct smalti_feature_map {
	struct smalti_partition partition;
	int64_t width, channels, slots;
	struct smalti_tile **body, **top, **bottom; /* of each slot */
	struct smalti_tile **part;                  /* of each band: its statistics until they are merged */
	struct smalti_tile *moments; /* of the whole map; NULL if it is not normalised, or not known yet */
};

/* Returns an empty map in the bands of `partition`, each `down` rows of which are `up` rows here. */
struct smalti_feature_map smalti_feature_map_new(struct smalti_task_group *task_group,
						 const struct smalti_partition *partition, int64_t up,
						 int64_t down, int64_t width, int64_t channels,
						 int64_t slots);
void smalti_feature_map_release(struct smalti_feature_map *map);

/* Returns the bytes of all bodies. */
int64_t smalti_feature_map_bytes(const struct smalti_feature_map *map);
int64_t smalti_feature_map_pixels(const struct smalti_feature_map *map, int64_t band);
/* Returns the slot's tile, made if needed. */
struct smalti_tile *smalti_feature_map_body(struct smalti_task_group *task_group,
					    struct smalti_feature_map *map, int64_t band);
/* Releases a body after its last reader was inserted. */
void smalti_feature_map_drop_body(struct smalti_feature_map *map, int64_t band);

/* Publishes the edges of a band whose body was written by another task, and its part of the statistics over
 * `groups` groups (0: none). */
void smalti_feature_map_publish(struct smalti_task_group *task_group, struct smalti_feature_map *map,
				int64_t band, int64_t groups);
/* Merges the parts of all bands by a tree in the order of the bands. Then the moments are known. */
void smalti_feature_map_merge(struct smalti_task_group *task_group, struct smalti_feature_map *map,
			      int64_t groups);

/* The operations that a convolution applies to its input first. */
struct smalti_conv_input {
	const struct smalti_affine *norm; /* GroupNorm and SiLU; NULL: none */
	int64_t groups;
	double epsilon;
	bool upsample; /* nearest ×2 */
};

/* Inserts a band of y = conv(f(x)) + bias, or with `add` of y += that, with its edges and its part of the
 * statistics over y_groups (0: none). x has the band and its neighbours, and the moments if it is normalised.
 * With a kernel of stride 2 the bands and the width of x are even, and halved in y. */
void smalti_feature_map_conv(struct smalti_task_group *task_group, struct smalti_feature_map *x, int64_t band,
			     const struct smalti_conv_input *input, const struct smalti_kernel *kernel,
			     enum smalti_dtype compute, bool add, int64_t y_groups,
			     struct smalti_feature_map *y);
/* Inserts the body of a band of y = a 1×1 convolution of x. */
void smalti_feature_map_linear(struct smalti_task_group *task_group, struct smalti_feature_map *x,
			       int64_t band, const struct smalti_linear *linear,
			       struct smalti_feature_map *y);
