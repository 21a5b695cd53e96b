/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/generate.h"

/* Open the embedded model in a session; end the program when there is none: no test makes sense without. */
struct smalti_model *embedded_open(struct smalti_session *session);
struct smalti_model *embedded_open_in(struct smalti_session *session, enum smalti_precision precision);
/* Opens it with one of the transformers that it had before, whose outputs the reference's are: in
 * tests/data/golden "transformer", or "transformer-2" of img2img, cache and lora. */
struct smalti_model *embedded_open_golden(struct smalti_session *session, enum smalti_precision precision,
					  const char *transformer);
/* Closes both and asserts success. */
void embedded_close(struct smalti_session *session, struct smalti_model *model);

/* Submits an image by its own plan; the request stays unchanged. */
int embedded_submit(const struct smalti_model *model, struct smalti_batch *batch,
		    const struct smalti_request *request, int64_t image,
		    const struct smalti_image_callbacks *callbacks, struct smalti_error *error);
