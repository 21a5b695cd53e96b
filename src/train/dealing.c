/* SPDX-License-Identifier: Apache-2.0 */
#include "train/dealing.h"

int smalti_dealing_open(struct smalti_dealing *dealing, enum smalti_bucketing bucketing, int64_t batch,
			const bool *own, bool spare, struct smalti_error *error)
{
	dealing->bucketing = bucketing;
	dealing->batch = batch;
	dealing->spare = spare;
	dealing->own = smalti_calloc(batch, sizeof(*own), error);
	if (!dealing->own)
		return -1;
	memcpy(dealing->own, own, (size_t)batch * sizeof(*own));
	return 0;
}

void smalti_dealing_close(struct smalti_dealing *dealing)
{
	for (int64_t i = 0; i < dealing->damaged_count; i++)
		free(dealing->damaged[i].cause);
	free(dealing->damaged);
	free(dealing->buckets);
	free(dealing->own);
	*dealing = (struct smalti_dealing){.batch = 0};
}

void smalti_dealing_reset(struct smalti_dealing *dealing)
{
	dealing->bucket_count = 0;
}

/* Returns the bucket of an image, a new one if need be. */
static struct smalti_bucket *bucket_of(struct smalti_dealing *dealing,
				       const struct smalti_features_image *image, struct smalti_error *error)
{
	const bool any = dealing->bucketing == SMALTI_BUCKET_NONE;
	const struct smalti_bucket wanted = {any ? 0 : image->latent_height, any ? 0 : image->latent_width,
					     0};
	for (int64_t i = 0; i < dealing->bucket_count; i++)
		if (dealing->buckets[i].height == wanted.height && dealing->buckets[i].width == wanted.width)
			return &dealing->buckets[i];
	if (smalti_grow(&dealing->buckets, dealing->bucket_count, sizeof(wanted), error) < 0)
		return NULL;
	dealing->buckets[dealing->bucket_count] = wanted;
	return &dealing->buckets[dealing->bucket_count++];
}

int smalti_dealing_take(struct smalti_dealing *dealing, const struct smalti_features_row *head, bool usable,
			struct smalti_error *error)
{
	if (!dealing->own)
		return 1;
	if (smalti_dealing_damage(dealing, head->index))
		return 0;
	if (!usable)
		return dealing->spare;
	struct smalti_bucket *bucket = bucket_of(dealing, &head->image, error);
	if (!bucket)
		return -1;
	const int64_t place = bucket->waiting;
	bucket->waiting = (place + 1) % dealing->batch;
	return dealing->own[place];
}

int smalti_dealing_note(struct smalti_dealing *dealing, int64_t index, const char *cause,
			struct smalti_error *error)
{
	char *copy = smalti_format(error, "%s", cause);
	if (!copy ||
	    smalti_grow(&dealing->damaged, dealing->damaged_count, sizeof(*dealing->damaged), error) < 0) {
		free(copy);
		return -1;
	}
	dealing->damaged[dealing->damaged_count++] = (struct smalti_damaged_row){index, copy, 0};
	return 0;
}

struct smalti_damaged_row *smalti_dealing_damage(const struct smalti_dealing *dealing, int64_t index)
{
	for (int64_t i = 0; i < dealing->damaged_count; i++)
		if (dealing->damaged[i].index == index)
			return &dealing->damaged[i];
	return NULL;
}
