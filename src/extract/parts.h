/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "dataset/dataset.h"
#include "extract/sizes.h"
#include "jobs/prompt_encoder.h"
#include "jobs/unused.h"
#include "jobs/vae.h"
#include "shard/shard.h"
#include "share/identity.h"
#include "smalti/extract.h"

/* A run's models, data set and options. */
struct smalti_extract_parts {
	struct smalti_session *session;
	struct smalti_extract_options options; /* every default replaced by its value */
	struct smalti_dataset *dataset;
	struct smalti_task_group *weights; /* of the tasks that make the text encoder's */
	struct smalti_prompt_encoder text; /* without t5: no text is wanted */
	struct smalti_vae *vae;            /* NULL: no images are wanted */
	struct smalti_extract_room room;   /* the memory for jobs */
	int64_t pack_tokens;               /* of captions that are computed together; 0: no text is wanted */
	int64_t window_tokens;
	struct smalti_error unused; /* says which tensors are not used, if any: no failure */
	cJSON *identity;            /* what has to be equal for a resume */
	cJSON *before;              /* its "list" before items were added; NULL: it has none */
	char text_digest[SMALTI_DIGEST_LENGTH + 1], vae_digest[SMALTI_DIGEST_LENGTH + 1]; /* "": not used */
	char *provenance; /* the identity as shards keep it */
	struct smalti_shard_schema schema;
};

/* Checks options. SMALTI_EINVAL if any is out of range. */
int smalti_extract_check(const struct smalti_extract_options *options, struct smalti_error *error);

/* Opens by checked options: the models, and what is computed together; with them the list, with progress, and
 * what is made of it. Close it in any case. @{ */
int smalti_extract_parts_open_models(struct smalti_extract_parts *parts, struct smalti_session *session,
				     const struct smalti_extract_options *options,
				     struct smalti_error *error);
int smalti_extract_parts_open(struct smalti_extract_parts *parts, struct smalti_session *session,
			      const struct smalti_extract_options *options,
			      smalti_extract_callback *on_progress, void *user, struct smalti_error *error);
/* @} */
void smalti_extract_parts_close(struct smalti_extract_parts *parts);

/* The names of enum smalti_fitting, ended by NULL. */
extern const char *const smalti_fittings[];

/* Returns what decides the features of a directory: the list, the models, and the options that change a
 * value. NULL without memory. */
cJSON *smalti_extract_identity(const struct smalti_extract_parts *parts, struct smalti_error *error);

/* Returns the identity's "list" of the items that struct smalti_dataset_info has as its prefix; NULL:
 * none. */
cJSON *smalti_extract_identity_before(const struct smalti_extract_parts *parts);

/* Tells whether the options accept a difference in a dotted key (struct smalti_extract_options). */
bool smalti_extract_accepts(void *options, const char *key);

/* The option, or another input of the user, that decides a value of the identity. */
extern const struct smalti_identity_remedy smalti_extract_remedies[];
