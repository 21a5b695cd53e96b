/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_ATTENTION_H
#define SMALTI_GRAPHS_VAE_ATTENTION_H

#include "graphs/features.h"
#include "graphs/vae_net.h"

/* Of GroupNorm, everywhere in this VAE (docs/reference.md 5.1). */
#define SMALTI_VAE_EPSILON 1e-6

/* The bodies of x, whole and with known moments, += O(attention(GroupNorm(x))): each band's queries against
 * all bands' keys, one head over all positions. */
void smalti_vae_attention(const struct smalti_vae_net *layers, const struct smalti_vae_layer *layer,
			  struct smalti_task_group *task_group, struct smalti_features *x);

#endif
