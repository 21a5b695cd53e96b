/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "features/reader.h"
#include "samplers/draws.h"
#include "smalti/train.h"

/* A sample of a batch. What it points to is its own. */
struct smalti_training_sample {
	int64_t epoch, index;  /* of the item, over all directories */
	int64_t height, width; /* of its latents */
	double ratio;          /* of its bin */
	int64_t original_height, original_width;
	struct smalti_sample_draws draws;
	uint32_t seed;       /* of its stream */
	bool dropped;        /* its caption is the null caption */
	int64_t tokens;      /* of the caption, dropped or not */
	void *moments;       /* mean, std [channels, height, width] */
	const void *caption; /* [tokens, width]; in the same memory; NULL: dropped */
};

/* Where training is in its data: all that the next batches depend on. */
struct smalti_data_position {
	int64_t epoch, rows; /* of the order of this epoch that were read */
	int64_t damaged;     /* rows that were left out */
	/* Those that wait in buckets, in the order in which they came. */
	struct smalti_waiting_item {
		int64_t epoch, index;
	} * waiting;
	int64_t waiting_count;
};

/* Reads the features of some directories as if they were one, batch after batch without end. */
struct smalti_training_data;

/* The directories that the options name have to fit each other. `damaged` gets a line for each row that is
 * left out. */
struct smalti_training_data *smalti_training_data_open(const struct smalti_train_options *options,
						       void (*damaged)(void *user, const char *message),
						       void *user, struct smalti_error *error);
void smalti_training_data_close(struct smalti_training_data *data);

const struct smalti_shard_schema *smalti_training_data_schema(const struct smalti_training_data *data);
/* What the run's identity says of them; NULL without memory. */
cJSON *smalti_training_data_identity(const struct smalti_training_data *data);

/* The extents of what is largest in all rows: the latents with the most values, and the longest caption. A
 * shard that cannot be opened has none. */
struct smalti_shard_extent smalti_training_data_extent(const struct smalti_training_data *data);

/* Goes on from there instead of the beginning. */
int smalti_training_data_seek(struct smalti_training_data *data, const struct smalti_data_position *position,
			      struct smalti_error *error);
/* Behind the last batch. The list is for free(). */
int smalti_training_data_position(const struct smalti_training_data *data,
				  struct smalti_data_position *position, struct smalti_error *error);

/* Rows: a batch, where the options name no number. */
int64_t smalti_training_read_ahead(const struct smalti_train_options *options);

/* Fills samples[batch] with the next batch; free each. */
int smalti_training_data_next(struct smalti_training_data *data, struct smalti_training_sample *samples,
			      struct smalti_error *error);
void smalti_training_sample_free(struct smalti_training_sample *sample);

/* The items one by one in the order of the lists, each with its first caption and without draws, for
 * evaluation: begins, or begins anew; the next usable one: 1, or 0 after the last. */
int smalti_training_data_rewind(struct smalti_training_data *data, struct smalti_error *error);
int smalti_training_data_item(struct smalti_training_data *data, struct smalti_training_sample *sample,
			      struct smalti_error *error);
