/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_H
#define SMALTI_JOBS_VAE_H

#include "graphs/vae_ends.h"
#include "jobs/digest.h"
#include "jobs/queue.h"
#include "jobs/vae_request.h"
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

/* Damaged weights make images, too: but of numbers that are none. */
int smalti_check_made(int64_t count, const float *values, const char *maker, struct smalti_error *error);

#endif
