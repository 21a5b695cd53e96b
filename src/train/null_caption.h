/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* Has the model's text encoder encode the empty text, padded to so many tokens (0: its own alone). The
 * features of captions have to be of the same one, `text_model` by their digest. Free the values. */
int smalti_null_caption_encode(struct smalti_session *session, const struct smalti_model_options *model,
			       const char *text_model, int64_t padded, struct smalti_null_caption *caption,
			       struct smalti_error *error);
