/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "features/reader.h"
#include "smalti/train.h"

/* Deals the rows of features to the ranks that compute their samples. All ranks read the heads of all rows,
 * and so make the same batches; a sample's place in its batch says which rank reads its values. Rows that
 * come into no batch are read by one rank, which finds their damage. */
struct smalti_dealing {
	enum smalti_bucketing bucketing;
	int64_t batch;
	bool *own;  /* [batch]: this rank reads the values; NULL: of all rows */
	bool spare; /* it also reads those of rows that come into no batch */
	struct smalti_bucket {
		int64_t height, width;
		int64_t waiting; /* samples, of a batch that is not full */
	} * buckets;
	int64_t bucket_count;
	/* Rows whose damage was found by the rank that read them. */
	struct smalti_damaged_row {
		int64_t index;
		char *cause;
		int64_t told; /* the epochs, up to the last in which it was told */
	} * damaged;
	int64_t damaged_count;
};

/* Deals the places of batches; without it this rank reads all values. */
int smalti_dealing_open(struct smalti_dealing *dealing, enum smalti_bucketing bucketing, int64_t batch,
			const bool *own, bool spare, struct smalti_error *error);
void smalti_dealing_close(struct smalti_dealing *dealing);
/* Empties the buckets. */
void smalti_dealing_reset(struct smalti_dealing *dealing);

/* Takes the next row: 1, this rank reads its values; 0, it does not. */
int smalti_dealing_take(struct smalti_dealing *dealing, const struct smalti_features_row *head, bool usable,
			struct smalti_error *error);

/* Notes a damaged row, while no rows are taken. */
int smalti_dealing_note(struct smalti_dealing *dealing, int64_t index, const char *cause,
			struct smalti_error *error);
/* Returns a row that is known to be damaged; NULL: it is not. */
struct smalti_damaged_row *smalti_dealing_damage(const struct smalti_dealing *dealing, int64_t index);
