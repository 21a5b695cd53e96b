/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "smalti/generate.h"

/* Reports on images to the user: failures on stderr as they happen, with --json a line for each image on the
 * standard output, else progress and a last line on stderr. */
struct smalti_image_report {
	const struct smalti_command *command;
	bool json, quiet;
	bool broken;   /* the standard output does not take more */
	int64_t total; /* images; -1: not known */
	struct {
		int64_t done, total; /* lines of a list that processes share; total 0: none */
	} shared;
	double began; /* smalti_now() */
	int64_t made, skipped, failed;
	struct smalti_progress progress;
	char *last; /* file of the last image made */
	struct smalti_session *session;
	cJSON *predicted; /* of --predict, which the end frees; NULL: none */
};

/* One image, or a request that could not be made. */
struct smalti_image_outcome {
	const char *id;   /* of the request; NULL: there is none, nor seed and number */
	const char *file; /* NULL: none */
	enum smalti_image_status { SMALTI_IMAGE_MADE, SMALTI_IMAGE_SKIPPED, SMALTI_IMAGE_FAILED } status;
	const struct smalti_error *error; /* of FAILED */
	uint64_t seed;
	int64_t width, height, image;
	double seconds;
	int64_t images;                     /* that it stands for */
	const struct smalti_unread *unread; /* NULL: not known */
	const struct cJSON *places;         /* the bytes that came to each; NULL: not known */
	int64_t calls, skipped_calls;       /* of the transformer with a step cache; 0: there is none */
};

/* The session stays open until the report ends: the last lines tell of its devices. */
void smalti_image_report_begin(struct smalti_image_report *report, const struct smalti_command *command,
			       struct smalti_session *session, bool json, bool quiet, int64_t total);
/* Shows how far unfinished images are: `begun` images in all, doing `detail`. */
void smalti_image_report_progress(struct smalti_image_report *report, double begun, const char *detail);
void smalti_image_report_add(struct smalti_image_report *report, const struct smalti_image_outcome *outcome);
/* Reports a failure that is of no image. */
void smalti_image_report_error(struct smalti_image_report *report, const char *message);
/* Reports a warning, unless only failures are to be reported. */
void smalti_image_report_warning(struct smalti_image_report *report, const char *message);
/* Prints the last lines; `signal` (or NULL) is what ended the work early, after which `remedy` helps;
 * `result` is where all images went (NULL: each names its file). Returns the command's exit status. */
enum smalti_exit smalti_image_report_end(struct smalti_image_report *report, const char *signal,
					 const char *remedy, const char *result);
