/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* A directory's identity is what must not change for a run to go on in it: a flat or nested object. */

/* What has to be given as before, such as "--dtype", if the key or one below it differs. */
struct smalti_identity_remedy {
	const char *key, *remedy;
};

/* Rules for dotted keys. Members may be NULL. */
struct smalti_identity_rules {
	const struct smalti_identity_remedy *remedies; /* the first that fits; ended by a key of NULL */
	/* Tells whether a difference there does not matter. */
	bool (*accepts)(void *user, const char *key);
	void *user;
};

/* Compares two identities; SMALTI_EINVAL, with the key, both values and the remedy, unless they say the same
 * in any order. */
int smalti_identity_compare(const char *directory, const cJSON *old, const cJSON *new,
			    const struct smalti_identity_rules *rules, struct smalti_error *error);

/* A directory's description: a file with a checksum that holds its identity. */
struct smalti_identity_format {
	const char *format;
	int version;
	const char *older; /* what to do where an older version made it */
};
int smalti_identity_write(const char *path, const struct smalti_identity_format *format,
			  const cJSON *identity, struct smalti_error *error);
/* Returns the identity; free with cJSON_Delete(). */
cJSON *smalti_identity_read(const char *path, const struct smalti_identity_format *format,
			    struct smalti_error *error);
