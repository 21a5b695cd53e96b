/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/generate.h"

/* The embedded model in a session; ends the program when there is none: no test makes sense without. */
struct smalti_model *embedded_open(struct smalti_session *session);
struct smalti_model *embedded_open_in(struct smalti_session *session, enum smalti_precision precision);
/* The same with the transformer that the reference's outputs are of. */
struct smalti_model *embedded_open_golden(struct smalti_session *session, enum smalti_precision precision);
/* Closes both and asserts that it goes well. */
void embedded_close(struct smalti_session *session, struct smalti_model *model);

/* Submits an image by a plan of its own; the request stays as it is. */
int embedded_submit(const struct smalti_model *model, struct smalti_batch *batch,
		    const struct smalti_request *request, int64_t image,
		    const struct smalti_image_callbacks *callbacks, struct smalti_error *error);
