/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* Encodes the empty text, padded to so many tokens (0: not padded), by the model's text encoder. The
 * captions' features have to be of that encoder, `text_model` by their digest. Free the values. */
int smalti_null_caption_encode(struct smalti_session *session, const struct smalti_model_options *model,
			       const char *text_model, int64_t padded, struct smalti_null_caption *caption,
			       struct smalti_error *error);
