/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/generate.h"

/* Open the embedded model in a session; end the program when there is none: no test makes sense without. */
struct smalti_model *embedded_open(struct smalti_session *session);
struct smalti_model *embedded_open_in(struct smalti_session *session, enum smalti_precision precision);
/* Opens it with the transformer of the reference's outputs. */
struct smalti_model *embedded_open_golden(struct smalti_session *session, enum smalti_precision precision);
/* Closes both and asserts success. */
void embedded_close(struct smalti_session *session, struct smalti_model *model);

/* Submits an image by its own plan; the request stays unchanged. */
int embedded_submit(const struct smalti_model *model, struct smalti_batch *batch,
		    const struct smalti_request *request, int64_t image,
		    const struct smalti_image_callbacks *callbacks, struct smalti_error *error);
