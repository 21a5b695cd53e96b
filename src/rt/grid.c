/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/grid.h"

int smalti_partition_even(struct smalti_partition *partition, int64_t rows, int64_t height,
			  struct smalti_error *error)
{
	if (rows < 1 || height < 1)
		return smalti_fail(error, SMALTI_EINVAL, "%lld rows cannot be cut into bands of %lld",
				   (long long)rows, (long long)height);
	partition->owner = NULL;
	partition->bands = (rows - 1) / height + 1;
	partition->first = smalti_calloc(partition->bands + 1, sizeof(*partition->first), error);
	if (!partition->first)
		return -1;
	for (int64_t band = 0; band < partition->bands; band++)
		partition->first[band] = band * height;
	partition->first[partition->bands] = rows;
	return 0;
}

int smalti_partition_scale(struct smalti_partition *partition, const struct smalti_partition *of,
			   int64_t factor, int64_t divisor, struct smalti_error *error)
{
	partition->bands = of->bands;
	partition->first = smalti_calloc(of->bands + 1, sizeof(*partition->first), error);
	partition->owner = of->owner ? smalti_calloc(of->bands, sizeof(*partition->owner), error) : NULL;
	if (!partition->first || (of->owner && !partition->owner)) {
		smalti_partition_free(partition);
		return -1;
	}
	if (of->owner)
		memcpy(partition->owner, of->owner, (size_t)of->bands * sizeof(*of->owner));
	for (int64_t band = 0; band <= of->bands; band++) {
		partition->first[band] = of->first[band] / divisor;
		if (of->first[band] % divisor || !smalti_multiply(&partition->first[band], factor)) {
			smalti_partition_free(partition);
			return smalti_fail(error, SMALTI_EINVAL,
					   "a band that ends at row %lld cannot be scaled by %lld/%lld",
					   (long long)of->first[band], (long long)factor, (long long)divisor);
		}
	}
	return 0;
}

int smalti_partition_distribute(struct smalti_partition *partition, const double *shares, int places,
				struct smalti_error *error)
{
	double all = 0;
	for (int place = 0; place < places; place++)
		all += shares[place];
	if (!(all > 0))
		return smalti_fail(error, SMALTI_EINVAL, "shares of bands: expected a sum above 0");
	partition->owner = smalti_calloc(partition->bands, sizeof(*partition->owner), error);
	if (!partition->owner)
		return -1;
	const double rows = (double)partition->first[partition->bands];
	double end = shares[0]; /* sum of the shares up to this place */
	for (int64_t band = 0, place = 0; band < partition->bands; band++) {
		const double middle = 0.5 * (double)(partition->first[band] + partition->first[band + 1]);
		while (place + 1 < places && middle * all >= end * rows)
			end += shares[++place];
		partition->owner[band] = (int)place;
	}
	return 0;
}

void smalti_partition_free(struct smalti_partition *partition)
{
	free(partition->first);
	free(partition->owner);
	partition->first = NULL;
	partition->owner = NULL;
	partition->bands = 0;
}

int64_t smalti_partition_rows(const struct smalti_partition *partition, int64_t band)
{
	return partition->first[band + 1] - partition->first[band];
}

struct smalti_grid smalti_grid_new(struct smalti_task_group *task_group,
				   const struct smalti_partition *partition, int64_t rows_per,
				   int64_t row_bytes)
{
	struct smalti_grid grid = {partition, NULL};
	struct smalti_error error = SMALTI_NO_ERROR;
	grid.tile = smalti_calloc(partition->bands, sizeof(struct smalti_tile *), &error);
	if (!grid.tile)
		smalti_task_group_break(task_group, &error);
	for (int64_t band = 0; grid.tile && band < partition->bands; band++) {
		grid.tile[band] =
		    smalti_tile_new(task_group, smalti_partition_rows(partition, band) * rows_per, row_bytes);
		if (grid.tile[band] && partition->owner)
			grid.tile[band]->owner = partition->owner[band];
	}
	return grid;
}

struct smalti_tile *smalti_grid_tile(const struct smalti_grid *grid, int64_t band)
{
	return grid->tile ? grid->tile[band] : NULL;
}

void smalti_grid_release(struct smalti_grid *grid)
{
	for (int64_t band = 0; grid->tile && band < grid->partition->bands; band++)
		smalti_tile_release(grid->tile[band]);
	free(grid->tile);
	*grid = (struct smalti_grid){NULL, NULL};
}
