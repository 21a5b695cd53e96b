/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_SEARCH_H
#define SMALTI_GRAPHS_VAE_SEARCH_H

#include "graphs/vae_plan.h"

/* The fastest plan within the budget. SMALTI_ENOMEM when there is none: then plan->memory is the least
 * that would do with that scratch, and the message says it. */
int smalti_vae_plan_make(struct smalti_vae_plan *plan, const struct smalti_vae_net *net,
			 const struct smalti_partition *partition, int64_t width,
			 const struct smalti_vae_budget *budget, struct smalti_error *error);
/* The same for a latent [height, width] in bands of `band_rows` of its rows. */
int smalti_vae_net_plan(const struct smalti_vae_net *net, int64_t height, int64_t width, int64_t band_rows,
			const struct smalti_vae_budget *budget, struct smalti_vae_plan *plan,
			struct smalti_error *error);

#endif
