/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_IDENTITY_H
#define SMALTI_EXTRACT_IDENTITY_H

#include "extract/parts.h"

/* Of enum smalti_fitting, ended by NULL. */
extern const char *const smalti_fittings[];

/* What decides the features of a directory: the list, the models, and the options that change a value. The
 * digests are those of the text encoder with its tokenizer, and of the VAE; NULL for one that is not used.
 * NULL without memory. */
cJSON *smalti_extract_identity(const struct smalti_extract_parts *parts, const char *text_digest,
			       const char *vae_digest, struct smalti_error *error);

/* What the identity has under "list" of the items that smalti_dataset_prefix() knows; NULL: none. */
cJSON *smalti_extract_identity_before(const struct smalti_extract_parts *parts);

/* Whether a difference in a dotted key does not matter, by the options (struct smalti_extract_options). */
bool smalti_extract_accepts(void *options, const char *key);

/* The option, or what else the user gave, that decides the value under a dotted key of the identity. */
const char *smalti_extract_remedy(const char *key);

#endif
