/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* What one extracting process measures, as JSON Lines in DIRECTORY/runs/HOST-PID-TIME.jsonl, for `smalti
 * report`:
 *
 *   {"run":1,"program":"smalti 0.1.0","host":..,"pid":..,"began":SECONDS SINCE 1970,"policy":..,
 *    "workers":[NAME..],"options":{..},"sizes":{..}}
 *   {"t":SECONDS SINCE IT BEGAN,"resident":BYTES,<the fields of a sample>,"busy":[SECONDS PER WORKER]} ...
 *   {"t":..,"lengths":[[TOKENS,CAPTIONS]..],"bins":[[HEIGHT,WIDTH,IMAGES]..]} now and then; the last counts
 *   {"t":..,"devices":[{"name":..,..}]}, where there are any, what they did (rt/device_use.h)
 *   {"t":..,"end":"finished"}, which a process that was killed lacks
 *   {"t":..,"predicted":{"machine":..,"seconds":..,"measured":..}} of --predict, which the command adds at
 * the end
 *
 * The last line may be torn. A log is worth less than the run: one that cannot be begun or written on is done
 * without. Used from one thread. */
struct smalti_run_log;

struct smalti_run_head {
	const char *policy;         /* NULL: none */
	const char *const *workers; /* their names */
	int worker_count;
	const cJSON *options; /* NULL: none */
	const cJSON *sizes;   /* what is computed together; NULL: none */
	double interval; /* seconds between samples at first; 0: 1. A long run's become rarer, so that a day
			    is a few thousand lines */
};

/* The state of a run. Counters only grow. */
struct smalti_run_sample {
	/* Done since the run began: an item is done when its row was handed to the writer. */
	int64_t items, captions, tokens, images, pixels, failures;
	int64_t rows, bytes;  /* in committed shards */
	int64_t read, stored; /* bytes of images' files that were read, and of shards that were written */
	/* Records that wait for their bytes, items being computed, rows that wait for the writer. @{ */
	int64_t waiting, computing, finished;
	/* @} */
	/* Seconds of work since the run began, of all threads together: T5, reading and decoding images,
	 * the VAE, writing shards. @{ */
	double text, decode, vae, write;
	/* @} */
	const double *busy; /* seconds, [worker_count]; NULL: not known */
};

/* Opens a log. NULL with an error: the run does without, and the functions below do nothing. */
struct smalti_run_log *smalti_run_log_open(const char *directory, const struct smalti_run_head *head,
					   struct smalti_error *error);

/* Count for the histograms a caption of so many tokens, an image in a bin of this size. */
void smalti_run_log_caption(struct smalti_run_log *log, int64_t tokens);
void smalti_run_log_image(struct smalti_run_log *log, int64_t height, int64_t width);

/* Tells whether the next sample is due: add() drops what comes earlier. */
bool smalti_run_log_due(const struct smalti_run_log *log);
void smalti_run_log_add(struct smalti_run_log *log, const struct smalti_run_sample *sample);

/* Takes what devices did. */
void smalti_run_log_devices(struct smalti_run_log *log, cJSON *devices);

/* Writes the last sample (NULL: none), the histograms, how the run ended ("finished", "stopped", "failed");
 * frees the log. -1 with the first error of all writing, which is to be told: the log is not complete. */
int smalti_run_log_close(struct smalti_run_log *log, const struct smalti_run_sample *last, const char *end,
			 struct smalti_error *error);

/* The numbers of a sample as a table, to write or read all of them. */
struct smalti_run_field {
	const char *key;
	size_t offset;
	bool real; /* double, else int64_t */
};
enum { SMALTI_RUN_FIELDS = 17 };
extern const struct smalti_run_field smalti_run_fields[SMALTI_RUN_FIELDS];
