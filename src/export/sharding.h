/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXPORT_SHARDING_H
#define SMALTI_EXPORT_SHARDING_H

#include "export/export.h"

/* Formats whose files hold many items each: features-NNNNNN.EXTENSION, until one has as many bytes as are
 * wanted. */

struct smalti_export_sharding {
	/* Begins a shard, and makes it safe. */
	int (*open)(struct smalti_export_run *run, struct smalti_error *error);
	int (*close)(struct smalti_export_run *run, struct smalti_error *error);
	int files; /* that a shard is */
	/* A name for feature `number`, for free(); NULL with an error. */
	char *(*name)(const struct smalti_export_run *run, const struct smalti_features_row *row, int number,
		      struct smalti_error *error);
	/* Puts an item into the shard; names[] are those of its features, NULL where it has none; `text` is
	 * all of it but its values, a line of JSON. Names may be taken: then they become NULL. */
	int (*add)(struct smalti_export_run *run, const struct smalti_features_row *row, char **names,
		   const char *text, struct smalti_error *error);
	bool (*is_full)(const struct smalti_export_run *run);
};

/* For the rows of kinds that have a `sharding`. */
int smalti_export_shard_row(struct smalti_export_run *run, const struct smalti_features_row *row,
			    struct smalti_error *error);
int smalti_export_shard_settle(struct smalti_export_run *run, bool last, struct smalti_error *error);

/* OUTPUT/features-NNNNNN.EXTENSION; NULL with an error; free with free(). */
char *smalti_export_shard_path(const struct smalti_export_run *run, const char *extension,
			       struct smalti_error *error);

/* All of an item but its values, as a line of JSON. NULL with an error; free with free(). */
char *smalti_export_describe(const struct smalti_export_run *run, const struct smalti_features_row *row,
			     char *const *names, struct smalti_error *error);

#endif
