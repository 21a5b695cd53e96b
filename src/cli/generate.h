/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"
#include "cli/image_report.h"
#include "cli/output.h"
#include "image/picture.h"
#include "jobs/image_file.h"
#include "text/prompts.h"

/* The options of `smalti generate`; strings belong to argv. */
struct smalti_generate_options {
	struct smalti_string_list prompt, lora;
	const char *prompts, *latents, *output;
	const char *predict;      /* the machine; NULL: none */
	const char *image, *mask; /* paths of what every prompt begins with, unless its line says otherwise */
	struct smalti_request request; /* of every prompt, unless its line says otherwise */
	struct smalti_model_options model;
	struct smalti_session_options session;
	int64_t lease_seconds;
	bool has_size, has_images, save_latents, resume, share, json, quiet, plan;
};

/* Checks what the table cannot: options that exclude each other, names, texts. */
int smalti_generate_check(const struct smalti_generate_options *options, struct smalti_error *error);

/* Runs the command: src/cli/generate.c. */
enum smalti_exit smalti_generate_run(void *options, int count, char **operands);

/* Latents to begin with, f32 [images, channels, height, width]. */
struct smalti_start {
	float *values;
	int64_t shape[4], count;
	char digest[17]; /* of the values, hexadecimal */
};

/* Reads all latents of a file (checkpoint/latents.h). */
int smalti_start_read(struct smalti_start *start, const char *path, struct smalti_error *error);
/* Makes the request begin with them. A width or height that it lacks follows theirs; all four axes must
 * fit. */
int smalti_start_apply(const struct smalti_start *start, const struct smalti_model_info *model,
		       struct smalti_request *request, struct smalti_error *error);
void smalti_start_free(struct smalti_start *start);

/* Where requests come from: the --prompt options, or the lines of the --prompts file. */
struct smalti_source {
	const struct smalti_generate_options *options;
	struct smalti_prompts *file; /* NULL: the options; the caller closes it */
	const char *name;
	int64_t images; /* to make, a bad line counting as one; -1: not known before the end */
	int next;       /* index of the next --prompt option */
};

/* Reads a regular file once before, to count the images. */
int smalti_source_open(struct smalti_source *source, const struct smalti_generate_options *options,
		       struct smalti_error *error);

struct smalti_item {
	struct smalti_prompt_line line;
	struct smalti_request request; /* its texts are the line's */
	const char *image, *mask;      /* paths, or NULL: the line's, else the options' */
	char id[208];                  /* the line's, else its number */
	bool warned;                   /* by the caller: of the parts of the prompt that are ignored */
};

/* Reads an item as smalti_prompts_next(); free the line of *item. The id of a bad line is its number. */
enum smalti_prompts_status smalti_source_next(struct smalti_source *source, struct smalti_item *item,
					      struct smalti_error *error);

/* Puts before `error` which line, or which of several --prompt options, it is about. */
void smalti_source_add_context(const struct smalti_source *source, const struct smalti_item *item,
			       struct smalti_error *error);

struct smalti_generate_share;
struct smalti_generate_part;

/* A picture that was read last, for requests that begin with the same one. */
struct smalti_named_picture {
	char *path; /* NULL: none */
	struct smalti_picture picture;
};
void smalti_named_picture_free(struct smalti_named_picture *picture);

/* The state of `smalti generate`. */
struct smalti_generation {
	const struct smalti_generate_options *options;
	struct smalti_start start; /* values NULL: noise */
	struct smalti_named_picture image, mask;
	struct smalti_source source;
	struct smalti_output output;
	struct smalti_session *session;
	struct smalti_model *model;
	struct smalti_model_info info; /* of the model */
	struct smalti_image_origin origin;
	struct smalti_image_report report;
	struct smalti_generate_share *share; /* NULL: nobody else makes these images */
	bool stopped;                        /* by a signal, before all was made */
	struct smalti_error cause;           /* what a signal to another rank says */
};

/* Makes the images of all requests, many at a time. Failures of single ones go to the report; -1 when no
 * batch can be opened, or a shared list cannot be worked on. */
int smalti_generation_run(struct smalti_generation *generation, struct smalti_error *error);
/* Submits the images of an item, or reports that its line is bad. */
void smalti_generation_make(struct smalti_generation *generation, struct smalti_batch *batch,
			    enum smalti_prompts_status status, struct smalti_item *item,
			    struct smalti_error *error);
/* Tells whether nothing new is to begin. */
bool smalti_generation_ends(const struct smalti_generation *generation);
/* Makes the request begin with the pictures of these paths (NULL: none), which stay until the next call. */
int smalti_generation_read_pictures(struct smalti_generation *generation, const char *image, const char *mask,
				    struct smalti_request *request, struct smalti_error *error);
/* Plans an item's request, which begins with the generation's latents, or the item's pictures, if there are
 * any. The request's strategy and shares become the plan's, in the plan's memory. */
struct smalti_plan *smalti_generation_resolve(struct smalti_generation *generation, struct smalti_item *item,
					      struct smalti_error *error);
/* Prints on standard output (--plan) what each place computes, receives and holds. */
int smalti_generation_plan(struct smalti_generation *generation, struct smalti_error *error);
