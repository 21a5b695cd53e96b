/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_GENERATE_SOURCE_H
#define SMALTI_CLI_GENERATE_SOURCE_H

#include "cli/generate_options.h"
#include "smalti/generate.h"
#include "text/prompts.h"

/* Where requests come from: the --prompt options, or the lines of the --prompts file. */
struct smalti_source {
	const struct smalti_generate_options *options;
	struct smalti_prompts *file; /* NULL: the options */
	const char *name;
	int64_t images; /* to make, a bad line counting as one; -1: not known before the end */
	int next;       /* of the --prompt options */
};

/* Reads a regular file once to count the images. Close it in any case. */
int smalti_source_open(struct smalti_source *source, const struct smalti_generate_options *options,
		       struct smalti_error *error);
void smalti_source_close(struct smalti_source *source);

struct smalti_item {
	struct smalti_prompt_line line;
	struct smalti_request request; /* its texts are the line's */
	char id[208];                  /* the line's, else its number */
	bool warned;                   /* for the caller: of the parts of the prompt that are ignored */
};

/* As smalti_prompts_next(); free the line of *item. The id of a bad line is its number. */
enum smalti_prompts_status smalti_source_next(struct smalti_source *source, struct smalti_item *item,
					      struct smalti_error *error);

/* Whether the next item is not there yet. */
bool smalti_source_waits(const struct smalti_source *source);

/* Says in front of `error` which prompt it is about, unless there is only one. */
void smalti_source_add_context(const struct smalti_source *source, const struct smalti_item *item,
			       struct smalti_error *error);

#endif
