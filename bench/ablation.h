/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/extract.h"
#include "smalti/train.h"

/* Training with and without each measure that makes it fast, on a data set made for that. */
struct smalti_ablation {
	const char *directory; /* the working directory */
	const struct smalti_session_options *session;
	struct smalti_model_options model;
	int64_t items;        /* of the data set, two or more */
	int64_t image_size;   /* bins of the images */
	int64_t picture_size; /* side of the pictures on the disk */
	int64_t batch, lanes;
	int repeats; /* steps that count, after one that does not */
};

/* Writes the data set: pictures, each with a caption. -1 with an error. */
int smalti_ablation_make_items(const struct smalti_ablation *ablation, struct smalti_error *error);

/* Extracts the features of all items into the directory `name` of the working directory; *stored becomes the
 * bytes of an item on the disk. */
int smalti_ablation_extract(const struct smalti_ablation *ablation, enum smalti_compression compression,
			    const char *name, int64_t *stored, struct smalti_error *error);

enum smalti_ablation_features { SMALTI_ABLATION_TEXT = 1, SMALTI_ABLATION_IMAGES = 2 };

/* How a run trains. */
struct smalti_ablation_way {
	const char *features; /* their directory */
	int64_t prefetch;     /* rows; 0: a batch */
	enum smalti_precision precision;
	enum smalti_recomputation recomputation;
	int64_t batches;   /* the run's, in the ablation's batches */
	unsigned computed; /* features of the batch that are computed again before each step, in f32 */
};

struct smalti_ablation_training {
	double seconds; /* an item: the median step's time with the work before it, by its items */
	double computing, data,
	    update;  /* shares of that time: features, the wait for stored ones, clipping and the optimizer */
	double busy; /* the part of the workers' time in steps that tasks take */
	double bound; /* seconds an item at the peak of all workers; NAN: not known for the precision */
	int64_t peak; /* most bytes resident; -1: not known */
};

int smalti_ablation_train(const struct smalti_ablation *ablation, const struct smalti_ablation_way *way,
			  struct smalti_ablation_training *result, struct smalti_error *error);
