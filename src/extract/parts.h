/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_PARTS_H
#define SMALTI_EXTRACT_PARTS_H

#include "base/json.h"
#include "dataset/dataset.h"
#include "jobs/digest.h"
#include "jobs/prompt_encoder.h"
#include "jobs/vae.h"
#include "shard/shard.h"
#include "smalti/extract.h"

/* What a run extracts with, and from. */
struct smalti_extract_parts {
	struct smalti_session *session;
	struct smalti_extract_options options; /* every default replaced by what it stands for */
	struct smalti_dataset *dataset;
	struct smalti_task_group *weights; /* of the tasks that make the text encoder's */
	struct smalti_prompt_encoder text; /* without t5: no text is asked for */
	struct smalti_vae *vae;            /* NULL: no images are */
	struct smalti_error unused;        /* says which tensors are not used, if any: no failure */
	cJSON *identity;                   /* what has to be the same for a resume */
	cJSON *before;    /* its "list" of before items were added to it; NULL: it has none */
	char *provenance; /* that, as it is kept in shards */
	struct smalti_shard_schema schema;
};

/* SMALTI_EINVAL for options that are out of range. */
int smalti_extract_check(const struct smalti_extract_options *options, struct smalti_error *error);

/* With options that were checked: opens the models first, then reads the list, reporting progress. Close it
 * in any case. */
int smalti_extract_parts_open(struct smalti_extract_parts *parts, struct smalti_session *session,
			      const struct smalti_extract_options *options,
			      smalti_extract_callback *on_progress, void *user, struct smalti_error *error);
void smalti_extract_parts_close(struct smalti_extract_parts *parts);

/* Bytes that may be held beside the weights and the program. */
int64_t smalti_extract_memory(const struct smalti_extract_parts *parts);

#endif
