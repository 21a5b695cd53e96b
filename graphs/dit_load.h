/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/dit.h"
#include "graphs/load.h"

/* See struct smalti_denoiser_functions. */
struct smalti_load smalti_dit_load_of(const struct smalti_denoiser *denoiser,
				      const struct smalti_tokens *tokens, const int64_t *prompt_tokens,
				      int count, int64_t band_tokens, int place);
