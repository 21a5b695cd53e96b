/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/vae/ends.h"
#include "graphs/vae/net.h"
#include "jobs/queue.h"
#include "jobs/unused.h"
#include "rt/session.h"
#include "smalti/vae.h"

/* The configuration and the mapped weights of a VAE's directory. */
struct smalti_checkpoint *smalti_vae_read(const char *directory, const char *variant,
					  struct smalti_vae_config *config, struct smalti_error *error);

struct smalti_vae {
	struct smalti_session *session;
	struct smalti_task_group *weights; /* of the tasks that make them */
	struct smalti_queue queue;
	struct smalti_vae_config config;
	enum smalti_dtype compute;
	char *directory;
	struct smalti_checkpoint *checkpoint;
	struct smalti_error unused; /* says which tensors are not used, if any: no failure */
	struct smalti_vae_net *net[SMALTI_VAE_DIRECTIONS]; /* NULL: not asked for yet */
};

/* Opened by the first call. */
struct smalti_vae_net *smalti_vae_open_net(struct smalti_vae *vae, enum smalti_vae_direction direction,
					   struct smalti_error *error);

/* Identifies the VAE. */
int smalti_vae_digest(const struct smalti_vae *vae, char digest[SMALTI_DIGEST_LENGTH + 1],
		      struct smalti_error *error);

/* Inserts the tasks of a decoding or encoding, `user`. */
typedef void smalti_vae_insert(struct smalti_vae_net *net, struct smalti_task_group *task_group,
			       const struct smalti_vae_plan *plan, void *user);

/* Plans a request that was checked, inserts its tasks and waits for them, reporting progress. */
int smalti_vae_request_run(struct smalti_vae *vae, enum smalti_vae_direction direction,
			   const struct smalti_vae_request *request, smalti_vae_insert *insert, void *user,
			   struct smalti_error *error);

/* -1 when the values of planes [channels, height, width] are not all finite: the first that is not is named.
 */
int smalti_check_planes(const float *planes, int64_t channels, int64_t height, int64_t width,
			struct smalti_error *error);

extern const char *const smalti_vae_doing[]; /* by direction: "decoding" */

/* Whether its numbers are in range. */
int smalti_vae_request_check(const struct smalti_vae *vae, const struct smalti_vae_request *request,
			     struct smalti_error *error);

/* Bytes that are resident besides what a plan holds. */
int64_t smalti_vae_fixed_bytes(const struct smalti_vae_net *net);
/* What a plan may take in the session's memory and on the scratch directory's disk; -1 with an error. */
int smalti_vae_request_budget(const struct smalti_session *session, const struct smalti_vae_net *net,
			      const struct smalti_vae_request *request, struct smalti_vae_budget *budget,
			      struct smalti_error *error);
/* Latent rows of a band, unless a request says otherwise: of devices that do everything as many as fit them,
 * in bands of one height. */
int64_t smalti_vae_band_rows(const struct smalti_session *session, const struct smalti_vae_net *net,
			     int64_t height, int64_t width);
/* Latent rows of a band where places share `height` of them: that of which the place with the most rows has
 * the fewest. */
int64_t smalti_vae_shared_rows(int64_t height, int64_t places);
/* The fastest plan in that, its bands the places' by the request's shares. SMALTI_ENOMEM with a message that
 * says the least memory that would do. Free it in any case. */
int smalti_vae_request_plan(const struct smalti_session *session, const struct smalti_vae_net *net,
			    const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			    struct smalti_error *error);

/* How fast this CPU is at the layers of a VAE: seconds per floating-point operation of one worker for each
 * layer (layers->count), measured on a piece of each in a second or so. Owned by the caller; NULL with an
 * error. */
double *smalti_vae_speeds(const struct smalti_vae_net *layers, int64_t width, struct smalti_error *error);
