/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "rt/device_use.h"
#include "smalti/model.h"
#include "smalti/session.h"

#include <stdbool.h>

/* One stage of a pipeline, by the graphs of real images. */
enum smalti_stage_kind {
	SMALTI_STAGE_T5,     /* captions to hidden states */
	SMALTI_STAGE_DIT,    /* one forward for an empty negative prompt and a caption of 40 tokens */
	SMALTI_STAGE_DECODE, /* latents to an image */
	SMALTI_STAGE_ENCODE, /* an image to its latents' distribution */
	SMALTI_STAGE_TRAIN,  /* the DiT's forward and backward of samples with a caption of 40 tokens */
};

enum { SMALTI_STAGE_CAPTIONS = 64 }; /* most captions at a time */

struct smalti_stage_spec {
	enum smalti_stage_kind kind;
	int64_t tokens[SMALTI_STAGE_CAPTIONS]; /* T5: of each caption */
	int64_t captions;
	int64_t width, height; /* of the image; 0: the model's own */
	int64_t samples;       /* training: how many samples' gradients are added */
};

/* The component of a stage: a directory in diffusers' layout, which may lack the others. */
struct smalti_stage_model {
	const char *directory, *variant;
	enum smalti_dtype precision;
	enum smalti_text_encoder_precision text_encoder;
	bool w8a8; /* products of the transformer's blocks are of integers of 8 bits */
};

struct smalti_stage_result {
	double seconds;        /* the median of the repeats, none of which makes weights */
	double least;          /* the fastest */
	double packing;        /* extra time of the run before them, which makes the weights' packed form */
	int64_t peak;          /* most bytes resident, from the component's opening on; -1: not known */
	int64_t width, height; /* as computed */
	double flops;          /* floating-point operations of a run */
	double
	    model_error; /* mean |measured - predicted| / mean measured of tasks; NAN: none was predicted */
	double ceiling;  /* of all workers in f32 per second: of CPUs at the clock at which they ran, of
			  * devices  in products */
	int devices;
	struct smalti_device_use uses[SMALTI_MAX_NODES]; /* of the repeats */
};

/* Measures a stage in its own session: with these options, or without StarPU when they are NULL. -1 with an
 * error. */
int smalti_stage_measure(const struct smalti_stage_spec *stage, const struct smalti_stage_model *model,
			 const struct smalti_session_options *options, int repeats,
			 struct smalti_stage_result *result, struct smalti_error *error);
