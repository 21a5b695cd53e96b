/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_IDENTITY_H
#define SMALTI_STORE_IDENTITY_H

#include "base/json.h"

/* SMALTI_EINVAL unless the two say the same, in whatever order: names the first key that differs, dotted,
 * both values and the remedy, which `remedy` (may be NULL) knows by the key. */
int smalti_identity_compare(const char *folder, const cJSON *old, const cJSON *new,
			    const char *(*remedy)(const char *key), struct smalti_error *error);

#endif
