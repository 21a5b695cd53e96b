/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* A training run's log.jsonl (docs/training.md), as it went: what a crash undid, and was done again, is
 * there once. */

enum { SMALTI_TRAINING_WORKERS = 64 };

/* The numbers of a step's line. */
enum smalti_training_field {
	SMALTI_TRAINING_LOSS,
	SMALTI_TRAINING_MSE,
	SMALTI_TRAINING_VB,
	SMALTI_TRAINING_NORM,
	SMALTI_TRAINING_RATE,
	SMALTI_TRAINING_SCALE,
	SMALTI_TRAINING_TFLOPS,
	SMALTI_TRAINING_SECONDS,
	SMALTI_TRAINING_SAMPLES_PER_SECOND,
	SMALTI_TRAINING_DATA_SECONDS,
	SMALTI_TRAINING_UPDATE_SECONDS,
	SMALTI_TRAINING_RESIDENT,
	SMALTI_TRAINING_MOVED,
	SMALTI_TRAINING_LATENT_PIXELS, /* of a sample, on average */
	SMALTI_TRAINING_CAPTION_TOKENS,
	SMALTI_TRAINING_DEVICE_MEMORY,      /* of the device that has most in use */
	SMALTI_TRAINING_DEVICE_UTILISATION, /* of all devices, on average */
	SMALTI_TRAINING_FIELDS
};

/* A step, or neighbours together. */
struct smalti_training_point {
	int64_t step;
	double values[SMALTI_TRAINING_FIELDS];
	float busy[SMALTI_TRAINING_WORKERS]; /* seconds */
};

struct smalti_training_history {
	struct smalti_training_point *points;
	int64_t count;
	cJSON *head; /* the line that the last process began with; NULL: there is no line that can be read */
	cJSON *evaluations, *checkpoints, *damaged; /* arrays of their lines */
	cJSON *devices, *operations, *failed;       /* the last process's; NULL: none */
	cJSON *predicted;                           /* of --predict; NULL: none */
	int64_t processes, unreadable;
	bool lives; /* a process trains in the directory */
};

/* The speed of the last minute's steps, and how long the steps that are left take at it. */
struct smalti_training_pace {
	int64_t step, steps; /* made, of all; 0: not known */
	double per_second;   /* NaN: the last process has made none */
	double left;         /* seconds; NaN: no process works at them, or not known */
};
struct smalti_training_pace smalti_training_history_pace(const struct smalti_training_history *history);

/* Returns a field's mean over the last process's steps but its first, which brings the weights. NaN: none is
 * known. */
double smalti_training_history_mean(const struct smalti_training_history *history,
				    enum smalti_training_field field);

/* Returns 0 with an empty history if there is no log. */
int smalti_training_history_read(const char *directory, struct smalti_training_history *history,
				 struct smalti_error *error);
void smalti_training_history_free(struct smalti_training_history *history);

/* Prints the history as JSON that may stand in a page. */
void smalti_training_history_print(FILE *page, const char *directory, int64_t every,
				   const struct smalti_training_history *history);
