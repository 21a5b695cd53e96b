/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

#include "kernels/matmul.h"

/* Returns how many rows' scores are computed together. */
static int64_t rows_together(const struct smalti_device *device, const struct search_rows_arguments *a)
{
	static const int64_t max = 1 << 14;
	const int64_t room = smalti_device_room(device) / (a->queries * (int64_t)sizeof(float));
	return smalti_max(smalti_min(smalti_min(room, max), a->rows), 1);
}

static int64_t tiles_of(int64_t count)
{
	return (count + SMALTI_SEARCH_TILE - 1) / SMALTI_SEARCH_TILE;
}

int smalti_device_search_rows(struct smalti_device *device, const struct search_rows_memories *data,
			      const struct search_rows_arguments *a, struct smalti_error *error)
{
	const int64_t together = rows_together(device, a);
	const struct smalti_device_memory *scores = smalti_device_scratch(
	    device, SMALTI_DEVICE_PRODUCT, a->queries * together * (int64_t)sizeof(float), error);
	const struct smalti_device_memory *const scored[] = {data->queries, data->vectors, scores};
	const struct smalti_device_memory *const offered[] = {scores, data->matches};
	struct search_some_arguments some = {.of = *a, .depth = smalti_raw_depth(a->dim)};
	if (!scores)
		return -1;
	for (; some.at < a->rows; some.at += together, some.of.more = true) {
		some.count = smalti_min(together, a->rows - some.at);
		if (smalti_device_groups(device, "search_scores", tiles_of(a->queries) * tiles_of(some.count),
					 scored, &some, error) < 0 ||
		    smalti_device_groups(device, "search_best", a->queries, offered, &some, error) < 0)
			return -1;
	}
	return 0;
}
