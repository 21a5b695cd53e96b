/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "store/run_log.h"

/* A run's log, as far as it can be read: lines that cannot be read are passed over and counted. */

struct smalti_run_point {
	double time; /* seconds since the run began; never less than the point before */
	int64_t resident;
	struct smalti_run_sample sample; /* its `busy` is NULL */
};

/* So many of one kind: captions of `first` tokens, images of `first` rows and `second` columns. */
struct smalti_run_count {
	int64_t first, second, count;
};

struct smalti_run_counts {
	struct smalti_run_count *items;
	int count;
};

struct smalti_run {
	char *file;       /* its name in runs/ */
	cJSON *head;      /* its first line, as run_log.h has it */
	cJSON *devices;   /* an array of objects, as run_log.h has it; NULL: none */
	cJSON *predicted; /* as run_log.h has it; NULL: nothing was */
	cJSON *end;       /* a text: how it ended; NULL: it was killed, or goes on */
	int64_t pid;
	double began; /* seconds since 1970 */
	int worker_count;
	struct smalti_run_point *points;
	double *busy; /* [points, workers] */
	int64_t count;
	struct smalti_run_counts lengths, bins;
	int64_t unreadable; /* lines */
};

/* Reads a log into a zeroed run: 1; 0 if its first line is none of ours; -1. Free it in any case. */
int smalti_run_read(int file, struct smalti_run *run, struct smalti_error *error);
void smalti_run_free(struct smalti_run *run);

struct smalti_runs {
	struct smalti_run *items; /* by when they began */
	int count;
	int unreadable; /* files that are no logs, or cannot be read */
};

/* Reads all of DIRECTORY/runs; none if there is no such directory. */
int smalti_runs_read(const char *directory, struct smalti_runs *runs, struct smalti_error *error);
void smalti_runs_free(struct smalti_runs *runs);
