/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "base/json.h"
#include "smalti/export.h"
#include "smalti/features.h"

/* The parts of an export: for src/export alone. */

SCOPED_RELEASE(struct smalti_features *, smalti_features_close)

struct smalti_export_run;
struct smalti_shared_list;

/* One format: src/export/NAME.c. */
struct smalti_export_kind {
	const char *name;
	/* Checks before anything is written, unless an earlier run did it. NULL: nothing can be wrong. */
	int (*check)(struct smalti_export_run *run, struct smalti_error *error);
	int64_t state_bytes; /* of the format's own state, zeros at the begin */
	/* NULL: zeros will do as the state. */
	int (*begin)(struct smalti_export_run *run, struct smalti_error *error);
	/* Whether rows fail alone with EINVAL, EUNSUPPORTED and ECORRUPT; else the export does, as with all
	 * other errors. */
	bool fail_alone;
	/* Writes a row with features. */
	int (*row)(struct smalti_export_run *run, const struct smalti_features_row *row,
		   struct smalti_error *error);
	/* Makes safe what can be: all of it when there are no more rows (`last`), else what is complete. */
	int (*settle)(struct smalti_export_run *run, bool last, struct smalti_error *error);
	void (*end)(
	    struct smalti_export_run *run); /* frees what the state points to, also after a failed begin */

	/* The rest is for formats whose files hold many items each, whose `row` and `settle` are those of
	 * sharding.c: features-NNNNNN.EXTENSION, until one has as many bytes as are wanted. */

	/* Begins a shard, and makes it safe. */
	int (*open_shard)(struct smalti_export_run *run, struct smalti_error *error);
	int (*close_shard)(struct smalti_export_run *run, struct smalti_error *error);
	int files; /* that a shard is */
	/* Returns a name for feature `number`, for free(); NULL with an error. */
	char *(*name_feature)(const struct smalti_export_run *run, const struct smalti_features_row *row,
			      int number, struct smalti_error *error);
	/* Puts an item into the shard; names[] are those of its features, NULL where it has none; `text` is
	 * all of it but its values, a line of JSON. Names may be taken: then they become NULL. */
	int (*add)(struct smalti_export_run *run, const struct smalti_features_row *row, char **names,
		   const char *text, struct smalti_error *error);
	bool (*is_full)(const struct smalti_export_run *run);
};

extern const struct smalti_export_kind smalti_export_pixart, smalti_export_safetensors,
    smalti_export_webdataset;

struct smalti_export_run {
	const struct smalti_export_options *options;
	const struct smalti_export_kind *kind;
	struct smalti_features *features; /* that `info` is of */
	struct smalti_features_info info;
	enum smalti_dtype dtype; /* of the features' values */
	struct smalti_export_progress *progress;
	int64_t shards;                  /* complete ones, of all runs */
	bool in_shard;                   /* one is begun */
	bool settled;                    /* set by the format: all rows until now are safe on the disk */
	void *state;                     /* the format's own */
	struct smalti_shared_list *list; /* of rows that processes share; NULL: one process exports */
};

#define SMALTI_EXPORT_STATE ".smalti-export.json"
/* Reads what an earlier run has left in OUTPUT/SMALTI_EXPORT_STATE: 1 and the progress, 0 if there is none,
 * -1 if it is of another export. */
int smalti_export_load(struct smalti_export_run *run, struct smalti_error *error);
int smalti_export_save(const struct smalti_export_run *run, struct smalti_error *error);
/* Hashes all that another directory's rows would differ in. */
enum { SMALTI_EXPORT_DIGEST = 17 };
void smalti_export_digest(const struct smalti_export_run *run, char text[SMALTI_EXPORT_DIGEST]);

/* What processes that share an export tell each other lies in OUTPUT/.share (share/list.h). */
#define SMALTI_EXPORT_SHARE ".share"
/* Joins them. SMALTI_EINVAL: OUTPUT has an export of another kind. */
int smalti_export_join(struct smalti_export_run *run, struct smalti_error *error);
/* Writes what is left, in ranges that this process claims, and waits for those of others. */
int smalti_export_ranges(struct smalti_export_run *run, struct smalti_error *error);
/* Fails with SMALTI_EINVAL if processes share the export. */
int smalti_export_check_alone(const struct smalti_export_run *run, struct smalti_error *error);

/* Writes the reader's next row: 1; 0 after the last; -1. A row that cannot be exported is counted. */
int smalti_export_row(struct smalti_export_run *run, struct smalti_features *reader,
		      struct smalti_error *error);

/* Opens a reader of the rows from number `skip` on; NULL with an error. */
struct smalti_features *smalti_export_open(const struct smalti_export_run *run, int64_t skip,
					   struct smalti_error *error);
/* Reads the next row: 1; 0 at the end; -1. A damaged one has no features, and the index -1. */
int smalti_export_next(struct smalti_features *reader, struct smalti_features_row *row,
		       struct smalti_error *error);
/* Tells the caller how far it is: SMALTI_ECANCELLED if it wants no more. */
int smalti_export_watch(const struct smalti_export_run *run, struct smalti_error *error);

/* The features of an item: of its captions by their numbers, then of its image. */
struct smalti_export_feature {
	const void *values;
	int rank;
	int64_t shape[3];
	int64_t count; /* of values; 0: it has none */
};
enum { SMALTI_EXPORT_FEATURES_MAX = SMALTI_FEATURES_CAPTIONS_MAX + 1 };
struct smalti_export_feature smalti_export_feature(const struct smalti_export_run *run,
						   const struct smalti_features_row *row, int number);

bool smalti_export_has_features(const struct smalti_features_row *row);

/* Gives `count` values, converted from the features' type, to a sink piece by piece. ECORRUPT for a value
 * that is too large for f16. */
typedef int smalti_export_sink(void *user, const void *data, int64_t bytes, struct smalti_error *error);
int smalti_export_values(const struct smalti_export_run *run, const void *values, int64_t count,
			 enum smalti_dtype to, smalti_export_sink *sink, void *user,
			 struct smalti_error *error);

/* Write the rows of formats whose files hold many items each. */
int smalti_export_shard_row(struct smalti_export_run *run, const struct smalti_features_row *row,
			    struct smalti_error *error);
int smalti_export_shard_settle(struct smalti_export_run *run, bool last, struct smalti_error *error);

/* Returns OUTPUT/features-NNNNNN.EXTENSION; NULL with an error; free with free(). */
char *smalti_export_shard_path(const struct smalti_export_run *run, const char *extension,
			       struct smalti_error *error);

/* Returns the name under which PixArt's multi-scale loader looks for an item's features (docs/reference.md
 * 6.5, 6.6): in its path the last '/' becomes '_', and the extensions of images become `extension`, wherever
 * they stand. It is relative, without "." and "//". SMALTI_EINVAL for one that would lie outside of its
 * directory, is empty, or has a part of more than 255 bytes. NULL with an error; free with free(). */
char *smalti_loader_name(const char *key, const char *extension, struct smalti_error *error);

/* Returns the directory of a caption's features: "caption_features_new" for "prompt", else
 * NAME_caption_features_new, from which "prompt_" is taken away (6.3). */
char *smalti_loader_directory(const char *caption, struct smalti_error *error);

/* Makes the directories of `name` in `directory`. SMALTI_EINVAL where a file is in the way. */
int smalti_make_parents(const char *directory, const char *name, struct smalti_error *error);
