/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_GENERATE_BATCH_H
#define SMALTI_CLI_GENERATE_BATCH_H

#include "cli/generate_image.h"
#include "cli/generate_latents.h"
#include "cli/generate_report.h"
#include "cli/generate_source.h"
#include "cli/output.h"

/* What `smalti generate` works with; all of it outlives the run. */
struct smalti_generation {
	struct smalti_source *source;
	struct smalti_output *output;
	struct smalti_report *report;
	struct smalti_model *model;
	struct smalti_image_origin origin;
	const struct smalti_start *start; /* NULL: noise */
	bool resume, save_latents;
	/* result */
	bool stopped; /* by a signal, before all was made */
};

/* Makes the images of all requests, many at a time. Failures of single ones go to the report;
 * -1 when no batch can be opened. */
int smalti_generation_run(struct smalti_generation *generation, struct smalti_error *error);

#endif
