/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "retrieve/projections.h"
#include "retrieve/vectors.h"

/* An index is a directory (docs/retrieve.md): vectors, items, and index.json, which is written last and has
 * the checksums of the others. */

#define SMALTI_INDEX_FORMAT "smalti index"
enum { SMALTI_INDEX_VERSION = 1 };

enum smalti_index_file { SMALTI_INDEX_VECTORS, SMALTI_INDEX_ITEMS, SMALTI_INDEX_FILES };
extern const char *const smalti_index_files[SMALTI_INDEX_FILES];
extern const char smalti_index_description[]; /* index.json */
extern const char *const smalti_index_kinds[];

/* Returns the text behind the item's number in its line of items.jsonl, `,"key":"…"}`. Free with free(). */
char *smalti_index_key_text(const char *key, struct smalti_error *error);

struct smalti_index;
/* Returns the model of captions, or images; NULL: the index cannot be asked for them, as the check
 * reports. */
const cJSON *smalti_index_model(const struct smalti_index *index, enum smalti_index_kind kind);
int smalti_index_check_kind(const struct smalti_index *index, enum smalti_index_kind by,
			    struct smalti_error *error);
/* Reads how captions were prepared. */
int smalti_index_preparation(const struct smalti_index *index, int *cleaning, int64_t *max_tokens,
			     struct smalti_error *error);

/* Makes a task group of that name, which fails when searches of the index are cancelled. */
struct smalti_task_group *smalti_index_task_group(const struct smalti_index *index,
						  struct smalti_session *session, const char *name,
						  struct smalti_error *error);

/* Checks the index's files after reading: fails if one has changed, as smalti_map_check(). */
int smalti_index_check(const struct smalti_index *index, struct smalti_error *error);

struct smalti_index {
	char *directory;
	cJSON *description; /* owns the strings of `info` */
	struct smalti_index_info info;
	const cJSON *model; /* the model's description in extract.json */
	struct smalti_safetensors *file;
	const float *vectors;                  /* [items, dim] */
	const float *mean, *whitening;         /* for images without projections: */
	struct smalti_projections projections; /* without: no file */
	struct smalti_task_group *cancelled;   /* encoding and searching end when it has failed; NULL: none */
	struct smalti_map items;
	int64_t *lines; /* where each item's line begins, and where the last one ends */
	struct smalti_index_key {
		uint64_t digest; /* of its text */
		int64_t number;
	} * keys; /* in the order of their digests */
};
