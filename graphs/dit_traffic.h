/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/dit.h"

/* Bytes that come to one place in one pass behind the warm-up, by what they are. */
struct smalti_traffic {
	double keys;       /* keys and values of other tokens */
	double heads;      /* Ulysses: queries to their shards, and what they attended to back home */
	double sums;       /* tensor: what shards compute from, and the sums that pass through them */
	double stream;     /* a band that goes to its next stage; the latents, and the transformer's output */
	double modulation; /* of the timestep */
};

/* Under a strategy that places everything, for prompts of that many tokens. What a place has is not sent
 * again; weights and captions come once, in the first pass, and are not counted. */
struct smalti_traffic smalti_dit_traffic(const struct smalti_denoiser *denoiser,
					 const struct smalti_tokens *tokens, const int64_t *prompt_tokens,
					 int count, int place);
double smalti_traffic_bytes(const struct smalti_traffic *traffic);
