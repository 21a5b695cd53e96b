/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/tile.h"

/* An axis cut into bands: band b holds rows first[b] … first[b+1]-1. Bands may be unequal. */
struct smalti_partition {
	int64_t bands;
	int64_t *first; /* bands + 1 entries, ascending from 0 */
	int *owner;     /* the distribution: the owner of each band's tiles (rt/tile.h); NULL: none */
};

/* Cuts into bands of `height` rows; the last one may be shorter. */
int smalti_partition_even(struct smalti_partition *partition, int64_t rows, int64_t height,
			  struct smalti_error *error);
/* Copies the bands and their owners, with `factor` rows for each `divisor` rows; each band has a multiple of
 * `divisor`. */
int smalti_partition_scale(struct smalti_partition *partition, const struct smalti_partition *of,
			   int64_t factor, int64_t divisor, struct smalti_error *error);
/* Gives the bands owners in blocks: place p gets about shares[p] of the rows, out of the shares' sum. */
int smalti_partition_distribute(struct smalti_partition *partition, const double *shares, int places,
				struct smalti_error *error);
void smalti_partition_free(struct smalti_partition *partition);
int64_t smalti_partition_rows(const struct smalti_partition *partition, int64_t band);

/* A tensor [rows, row_bytes] cut into bands of rows, each band a tile. */
struct smalti_grid {
	const struct smalti_partition *partition; /* not owned */
	struct smalti_tile **tile;                /* one per band */
};

/* Makes the tiles. Each row of the partition is `rows_per` rows of the tiles (1 for tokens, the width for
 * pixels). */
struct smalti_grid smalti_grid_new(struct smalti_task_group *task_group,
				   const struct smalti_partition *partition, int64_t rows_per,
				   int64_t row_bytes);
/* Returns a band's tile, NULL if the task group failed before the tile could be made. */
struct smalti_tile *smalti_grid_tile(const struct smalti_grid *grid, int64_t band);
/* Releases every tile as smalti_tile_release() does; the grid is empty afterwards. */
void smalti_grid_release(struct smalti_grid *grid);
