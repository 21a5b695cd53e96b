/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/vae.h"

/* A broadcast of rank 0 to the other ranks, so that all insert the same tasks of a VAE. */
struct smalti_vae_broadcast {
	bool ends; /* the VAE is closed, and nothing follows */
	bool raw;  /* of a decoding */
	enum smalti_vae_direction direction;
	struct smalti_vae_request request; /* its shares lie behind it */
};

/* Broadcast what rank 0 runs, or that it closes the VAE; with one rank they do nothing. @{ */
void smalti_vae_broadcast_request(const struct smalti_vae_request *request,
				  enum smalti_vae_direction direction, bool raw);
void smalti_vae_broadcast_end(void);
/* @} */

/* Runs on another rank what rank 0 runs, until it closes its VAE. Both open session and VAE alike. */
void smalti_vae_follow(struct smalti_vae *vae);

/* Does a rank's part of a request, for smalti_vae_follow() (jobs/vae_decode.c). @{ */
void smalti_vae_follow_decoding(struct smalti_vae *vae, const struct smalti_vae_broadcast *message);
void smalti_vae_follow_encoding(struct smalti_vae *vae, const struct smalti_vae_broadcast *message);
/* @} */
