/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_SPEED_H
#define SMALTI_JOBS_VAE_SPEED_H

#include "graphs/vae_net.h"

/* How fast this CPU is at the layers of a VAE: seconds per floating-point operation of one worker for each
 * layer (layers->count), measured on a piece of each in a second or so. Owned by the caller; NULL with an
 * error. */
double *smalti_vae_speeds(const struct smalti_vae_net *layers, int64_t width, struct smalti_error *error);

#endif
