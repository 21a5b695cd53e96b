/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "smalti/generate.h"

struct smalti_field;

/* A file of prompts, read line by line in constant memory. Blank lines are skipped but counted. The first
 * other line decides the format. If it begins with '{', the file is JSON Lines: one object per line, with the
 * argument names of diffusers' pipelines. If it begins as a JSON array, reading fails. Else every line is a
 * prompt as it is. */
struct smalti_prompts;

/* One prompt; a value that is absent or null is NULL, 0 or false. */
struct smalti_prompt_line {
	int64_t line;     /* from 1 */
	char *id;         /* "id": usable as a file name, see smalti_check_id() */
	char *prompt;     /* "prompt": never NULL */
	char *negative;   /* "negative_prompt" */
	char *scheduler;  /* "scheduler": any text, for the caller to look up */
	char *lora;       /* "lora": adapters of this prompt alone */
	char *step_cache; /* "step_cache" */
	bool has_seed;    /* "seed": -2^63 to 2^64-1, exactly; negative ones plus 2^64 */
	uint64_t seed;
	int64_t width, height; /* "width", "height": 16 to 10^9 */
	int64_t steps;         /* "num_inference_steps": 1 to 1000 */
	int64_t images;        /* "num_images_per_prompt": 1 to 10^6 */
	bool has_guidance;     /* "guidance_scale": 0 to 1000 */
	double guidance;
	bool has_eta; /* "eta": 0 to 1 */
	double eta;
	char *image, *mask;  /* "image", "mask": paths; only in files of prompts */
	double strength;     /* "strength": 0 to 1 */
	bool has_keep, keep; /* "keep_original" */
	bool has_binning;    /* "use_resolution_binning" */
	bool binning;
};

/* A line of more bytes than this is refused. */
enum { SMALTI_PROMPT_LINE_LIMIT = 16 << 20 };

/* Opens a file; `path` "-" is standard input. */
struct smalti_prompts *smalti_prompts_open(const char *path, struct smalti_error *error);
void smalti_prompts_close(struct smalti_prompts *prompts);

enum smalti_prompts_status {
	SMALTI_PROMPTS_FAILED = -1, /* the file cannot be read on */
	SMALTI_PROMPTS_END = 0,
	SMALTI_PROMPTS_LINE = 1, /* *line is filled; free it */
	SMALTI_PROMPTS_BAD = 2,  /* this line is wrong, the next call reads the next one */
};

/* Reads the next prompt. FAILED and BAD fill `error` (give an empty one each time) with
 * "FILE:LINE: reason"; line->line is set for BAD too, the rest of *line is empty. */
enum smalti_prompts_status smalti_prompts_next(struct smalti_prompts *prompts,
					       struct smalti_prompt_line *line, struct smalti_error *error);

/* Moves to where line number `line` + 1 begins, in a regular file of which a prompt was read before: that
 * decides the format. */
void smalti_prompts_seek(struct smalti_prompts *prompts, int64_t offset, int64_t line);

/* Returns the descriptor that is read. */
int smalti_prompts_file(const struct smalti_prompts *prompts);

/* Tells whether the next line is not there yet, so that reading it would wait for its writer. */
bool smalti_prompts_waits(const struct smalti_prompts *prompts);

void smalti_prompt_line_free(struct smalti_prompt_line *line);

/* Returns the request of a line: what the line gives wins over the defaults; texts are the line's. */
struct smalti_request smalti_request_of_line(const struct smalti_request *defaults,
					     const struct smalti_prompt_line *line);

/* Checks that a UTF-8 text can name an output file: 1 to 200 bytes, no '/', no leading '.', no control
 * characters. */
int smalti_check_id(const char *id, struct smalti_error *error);

/* Further keys that an object may have, and where their values go (base/json_fields.h). */
struct smalti_prompt_fields {
	const struct smalti_field *fields;
	size_t count;
	void *values;
};

/* Reads a JSON object into *line, whose strings may be partly filled when it fails: free them in any case.
 * `more` NULL: no other keys. */
int smalti_prompt_parse_json(const char *text, size_t length, struct smalti_prompt_line *line,
			     const struct smalti_prompt_fields *more, struct smalti_error *error);
