/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "features/reader.h"
#include "samplers/draws.h"
#include "smalti/train.h"

/* A sample of a batch. It owns its memory. */
struct smalti_training_sample {
	int64_t epoch, index;  /* of the item, over all directories */
	int64_t height, width; /* of its latents */
	double ratio;          /* of its bin */
	int64_t original_height, original_width;
	struct smalti_sample_draws draws;
	uint32_t seed;       /* seed of its stream */
	bool dropped;        /* its caption is the null caption */
	int64_t tokens;      /* of the caption, dropped or not */
	void *moments;       /* mean, std [channels, height, width]; NULL: another rank reads them */
	const void *caption; /* [tokens, width]; in the same memory; NULL: dropped, or as above */
};

/* The position of training in its data. The next batches depend on nothing else. */
struct smalti_data_position {
	int64_t epoch, rows; /* rows of this epoch's order that were read */
	int64_t damaged;     /* rows that were left out */
	/* The items that wait in buckets, in the order in which they were read. */
	struct smalti_waiting_item {
		int64_t epoch, index;
	} * waiting;
	int64_t waiting_count;
};

/* Reads the features of some directories as if they were one, batch after batch without end. */
struct smalti_training_data;

/* Opens the directories that the options name, which have to fit each other. `damaged` gets a line for each
 * row that is left out. */
struct smalti_training_data *smalti_training_data_open(const struct smalti_train_options *options,
						       void (*damaged)(void *user, const char *message),
						       void *user, struct smalti_error *error);
void smalti_training_data_close(struct smalti_training_data *data);

/* Reads from now on only the values of samples at these places of a batch, and of rows that come into no
 * batch if they are `spare`: other ranks read the others (train/dealing.h). Call it before the first batch.
 */
int smalti_training_data_deal(struct smalti_training_data *data, const bool *own, bool spare,
			      struct smalti_error *error);
/* Returns the index of the damaged row that ended the last call of next(), for other ranks do not know of it;
 * -1: none. To leave it out, all ranks have it noted, and seek the position before that call. @{ */
int64_t smalti_training_data_damaged(const struct smalti_training_data *data);
int smalti_training_data_note(struct smalti_training_data *data, int64_t index, const char *cause,
			      struct smalti_error *error);
/* @} */

const struct smalti_shard_schema *smalti_training_data_schema(const struct smalti_training_data *data);
/* Returns the data's part of the run's identity; NULL without memory. */
cJSON *smalti_training_data_identity(const struct smalti_training_data *data);

/* Returns the largest extents: the latents with the most values, and the longest caption, of the shards that
 * can be opened. */
struct smalti_shard_extent smalti_training_data_extent(const struct smalti_training_data *data);

/* Goes to a position instead of the beginning. */
int smalti_training_data_seek(struct smalti_training_data *data, const struct smalti_data_position *position,
			      struct smalti_error *error);
/* Returns the position behind the last batch. The list is for free(). */
int smalti_training_data_position(const struct smalti_training_data *data,
				  struct smalti_data_position *position, struct smalti_error *error);

/* Returns the rows read ahead: a batch, if the options name no number. */
int64_t smalti_training_read_ahead(const struct smalti_train_options *options);

/* Fills samples[batch] with the next batch; the caller frees each. */
int smalti_training_data_next(struct smalti_training_data *data, struct smalti_training_sample *samples,
			      struct smalti_error *error);
void smalti_training_sample_free(struct smalti_training_sample *sample);

/* Gives the items in the order of the lists, each with its first caption and without draws, for evaluation.
 * The first begins anew; the second gives the next usable item: 1, or 0 after the last. */
int smalti_training_data_rewind(struct smalti_training_data *data, struct smalti_error *error);
int smalti_training_data_item(struct smalti_training_data *data, struct smalti_training_sample *sample,
			      struct smalti_error *error);
