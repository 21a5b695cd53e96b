/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_IDENTITY_H
#define SMALTI_STORE_IDENTITY_H

#include "base/json.h"

#include <stdbool.h>

/* What is known of keys, dotted ones. Members may be NULL. */
struct smalti_identity_rules {
	/* What has to be given as it was, as in "--dtype"; NULL: not known. */
	const char *(*remedy)(const char *key);
	/* Whether a difference there does not matter. */
	bool (*accepts)(void *user, const char *key);
	void *user;
};

/* SMALTI_EINVAL unless the two say the same, in whatever order: names the first key that differs, dotted,
 * both values and the remedy, which the rules know by the key. */
int smalti_identity_compare(const char *directory, const cJSON *old, const cJSON *new,
			    const struct smalti_identity_rules *rules, struct smalti_error *error);

#endif
