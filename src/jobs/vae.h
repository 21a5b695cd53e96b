/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/vae/ends.h"
#include "graphs/vae/net.h"
#include "jobs/queue.h"
#include "jobs/unused.h"
#include "rt/session.h"
#include "smalti/vae.h"

/* Reads the configuration and maps the weights of a VAE's directory. */
struct smalti_checkpoint *smalti_vae_read(const char *directory, const char *variant,
					  struct smalti_vae_config *config, struct smalti_error *error);

struct smalti_vae {
	struct smalti_session *session;
	struct smalti_task_group *weights; /* the group of the tasks that make the weights */
	struct smalti_queue queue;
	struct smalti_vae_config config;
	enum smalti_dtype compute;
	char *directory;
	struct smalti_checkpoint *checkpoint;
	struct smalti_error unused; /* says which tensors are not used, if any: no failure */
	struct smalti_vae_net *net[SMALTI_VAE_DIRECTIONS]; /* NULL: not opened yet */
	bool opened;                                       /* on all ranks */
};

/* Returns a net, which the first call opens. */
struct smalti_vae_net *smalti_vae_open_net(struct smalti_vae *vae, enum smalti_vae_direction direction,
					   struct smalti_error *error);

int smalti_vae_digest(const struct smalti_vae *vae, char digest[SMALTI_DIGEST_LENGTH + 1],
		      struct smalti_error *error);

/* Inserts the tasks of the decoding or encoding `user`. */
typedef void smalti_vae_insert(struct smalti_vae_net *net, struct smalti_task_group *task_group,
			       const struct smalti_vae_plan *plan, void *user);

/* Plans a request that was checked, inserts its tasks and waits for them, reporting progress. */
int smalti_vae_request_run(struct smalti_vae *vae, enum smalti_vae_direction direction,
			   const struct smalti_vae_request *request, smalti_vae_insert *insert, void *user,
			   struct smalti_error *error);

/* Checks that all values of planes [channels, height, width] are finite: -1 names the first one that is
 * not. */
int smalti_check_planes(const float *planes, int64_t channels, int64_t height, int64_t width,
			struct smalti_error *error);

extern const char *const smalti_vae_doing[]; /* by direction: "decoding" */

/* Checks that the request's numbers are in range. */
int smalti_vae_request_check(const struct smalti_vae *vae, const struct smalti_vae_request *request,
			     struct smalti_error *error);

/* Returns the bytes that are resident besides those of a plan. */
int64_t smalti_vae_fixed_bytes(const struct smalti_vae_net *net);
/* Says what a plan may take in the session's memory and on the scratch directory's disk; -1 with an error. */
int smalti_vae_request_budget(const struct smalti_session *session, const struct smalti_vae_net *net,
			      const struct smalti_vae_request *request, struct smalti_vae_budget *budget,
			      struct smalti_error *error);
/* Returns the default latent rows of a band. For devices that do everything they are as many as fit, in bands
 * of one height. */
int64_t smalti_vae_band_rows(const struct smalti_session *session, const struct smalti_vae_net *net,
			     int64_t height, int64_t width);
/* Returns a band's latent rows if places share `height` of them: those that give the place with the most rows
 * the fewest. */
int64_t smalti_vae_shared_rows(int64_t height, int64_t places);
/* Returns a number that equal plans have in common, for the ranks to compare; `maps`: of the net. */
uint64_t smalti_vae_plan_digest(const struct smalti_vae_plan *plan, int maps);
/* Makes the fastest plan in that budget, its bands at the places by the request's shares. SMALTI_ENOMEM with
 * a message that says the least sufficient memory. Free it in any case. */
int smalti_vae_request_plan(const struct smalti_session *session, const struct smalti_vae_net *net,
			    const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			    struct smalti_error *error);

/* Measures this CPU's speed at a VAE's layers: seconds per floating-point operation of one worker for each
 * layer (layers->count), on a piece of each, in a second or so. Owned by the caller; NULL with an error. */
double *smalti_vae_speeds(const struct smalti_vae_net *layers, int64_t width, struct smalti_error *error);
