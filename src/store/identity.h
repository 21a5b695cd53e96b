/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* A directory's identity is what has to be the same for a run to go on in it: a flat or nested object. */

/* What has to be given as it was, as in "--dtype", where a key differs or one below it. */
struct smalti_identity_remedy {
	const char *key, *remedy;
};

/* What is known of keys, dotted ones. Members may be NULL. */
struct smalti_identity_rules {
	const struct smalti_identity_remedy *remedies; /* the first that fits; ended by a key of NULL */
	/* Whether a difference there does not matter. */
	bool (*accepts)(void *user, const char *key);
	void *user;
};

/* SMALTI_EINVAL unless the two say the same, in whatever order: names the key, both values and the remedy. */
int smalti_identity_compare(const char *directory, const cJSON *old, const cJSON *new,
			    const struct smalti_identity_rules *rules, struct smalti_error *error);
