/* SPDX-License-Identifier: Apache-2.0 */
#include "features/queue.h"

#include <inttypes.h>

/* Finds the next row that is wanted. 1: *shard has it as its row *index; else as next(). */
static int find(struct smalti_features_source *source, struct smalti_shard **shard, int64_t *index,
		struct smalti_error *error)
{
	struct smalti_features_place place;
	while (smalti_features_order_next(source->order, &place)) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		*index = source->set->shards.entries[place.shard].id.first + place.row;
		*shard = smalti_features_shards_get(&source->shards, source->set, place.shard, &cause);
		if (!*shard)
			return smalti_fail(error, cause.code, "row %" PRId64 ": %.900s", *index,
					   cause.message);
		if (!source->complete || smalti_shard_row_is_complete(*shard, *index))
			return 1;
	}
	return 0;
}

int smalti_features_source_next(struct smalti_features_source *source, struct smalti_features_row *row,
				struct smalti_error *error)
{
	struct smalti_shard *shard;
	int64_t index;
	const int found = find(source, &shard, &index, error);
	if (found <= 0)
		return found;
	return smalti_shard_row(shard, index, row, error) < 0 ? -1 : 1;
}

/* Which rows are complete is known from their shards alone, so that those are opened. */
int smalti_features_source_skip(struct smalti_features_source *source, int64_t count,
				struct smalti_error *error)
{
	if (!source->complete) {
		smalti_features_order_skip(source->order, count);
		return 0;
	}
	for (int64_t i = 0; i < count; i++) {
		struct smalti_shard *shard;
		int64_t index;
		struct smalti_error cause = SMALTI_NO_ERROR;
		const int found = find(source, &shard, &index, &cause);
		if (found == 0)
			break;
		if (found < 0 && !smalti_is_of_input(cause.code))
			return smalti_fail(error, cause.code, "%s", cause.message);
	}
	return 0;
}
