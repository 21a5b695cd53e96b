/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_GENERATE_BATCH_H
#define SMALTI_CLI_GENERATE_BATCH_H

#include "cli/generate_image.h"
#include "cli/generate_latents.h"
#include "cli/generate_source.h"
#include "cli/image_report.h"
#include "cli/output.h"

/* What `smalti generate` works with. */
struct smalti_generation {
	const struct smalti_generate_options *options;
	struct smalti_start start; /* values NULL: noise */
	struct smalti_source source;
	struct smalti_output output;
	struct smalti_session *session;
	struct smalti_model *model;
	struct smalti_model_info info; /* of the model */
	struct smalti_image_origin origin;
	struct smalti_image_report report;
	bool stopped; /* by a signal, before all was made */
};

/* Makes the images of all requests, many at a time. Failures of single ones go to the report;
 * -1 when no batch can be opened. */
int smalti_generation_run(struct smalti_generation *generation, struct smalti_error *error);

#endif
