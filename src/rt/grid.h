/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/tile.h"

/* How an axis is cut into bands: band b holds rows first[b] … first[b+1]-1. Bands may be unequal. */
struct smalti_partition {
	int64_t bands;
	int64_t *first; /* bands + 1 entries, ascending from 0 */
	int *owner;     /* the distribution: of each band's tiles (rt/tile.h); NULL: none */
};

/* Bands of `height` rows, the last one ragged. */
int smalti_partition_even(struct smalti_partition *partition, int64_t rows, int64_t height,
			  struct smalti_error *error);
/* The same bands, of the same owners, with every `divisor` rows standing for `factor` rows; each band has a
 * multiple of `divisor`. */
int smalti_partition_scale(struct smalti_partition *partition, const struct smalti_partition *of,
			   int64_t factor, int64_t divisor, struct smalti_error *error);
/* Gives the bands owners in blocks: place p gets about shares[p] of their sum of the rows. */
int smalti_partition_distribute(struct smalti_partition *partition, const double *shares, int places,
				struct smalti_error *error);
void smalti_partition_free(struct smalti_partition *partition);
int64_t smalti_partition_rows(const struct smalti_partition *partition, int64_t band);

/* A tensor [rows, row_bytes] cut into bands of rows, each band a tile. */
struct smalti_grid {
	const struct smalti_partition *partition; /* not owned */
	struct smalti_tile **tile;                /* one per band */
};

/* Each row of the cut is `rows_per` rows of the tiles (1 for tokens, the width for pixels). */
struct smalti_grid smalti_grid_new(struct smalti_task_group *task_group,
				   const struct smalti_partition *partition, int64_t rows_per,
				   int64_t row_bytes);
/* NULL when the task group failed before the tile could be made. */
struct smalti_tile *smalti_grid_tile(const struct smalti_grid *grid, int64_t band);
/* As smalti_tile_release for every tile; the grid is empty afterwards. */
void smalti_grid_release(struct smalti_grid *grid);
