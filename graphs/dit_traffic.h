/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/dit.h"
#include "graphs/load.h"

/* What comes to a place under a strategy that places everything, for prompts of that many tokens. What a
 * place has is not sent again; weights and captions come once, in the first pass, and are not counted. */
struct smalti_traffic smalti_dit_traffic(const struct smalti_denoiser *denoiser,
					 const struct smalti_tokens *tokens, const int64_t *prompt_tokens,
					 int count, int place);
