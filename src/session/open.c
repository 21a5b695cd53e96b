/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/drivers.h"
#include "host/environment.h"
#include "host/pool.h"
#include "host/threads.h"
#include "host/tile_memory.h"
#include "kernels/isa.h"
#include "ranks/ranks.h"
#include "rt/counting.h"
#include "rt/device_use.h"
#include "rt/devices_alone.h"
#include "rt/op_use.h"
#include "rt/place_facts.h"
#include "rt/places.h"
#include "rt/rank_facts.h"
#include "rt/replay.h"
#include "rt/session.h"
#include "rt/slowdown.h"
#include "rt/task.h"
#include "rt/task_times.h"
#include "rt/transfers.h"
#include "session/policies.h"
#include "session/reproducible.h"
#include "session/scratch.h"
#include "session/variables.h"
#include "trace/recent.h"
#include "trace/trace.h"

#include <starpu.h>

enum {
	MEGABYTE = 1 << 20,
	MIN_TILES = 32 * MEGABYTE,
	START = 64 * MEGABYTE, /* a generous estimate of what StarPU takes when it starts */
};

static bool is_open; /* StarPU allows one session per process */

void smalti_session_defaults(struct smalti_session_options *options)
{
	*options = (struct smalti_session_options)SMALTI_SESSION_DEFAULTS;
}

static int check_alone(struct smalti_error *error)
{
	if (!is_open)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "a session is open already: StarPU allows one per process; "
			   "use that one, or close it");
}

static int check_options(const struct smalti_session_options *options, const struct smalti_machine_cpus *cpus,
			 struct smalti_error *error)
{
	if (check_alone(error) < 0)
		return -1;
	if (options->cpus < 0 || options->cpus > STARPU_MAXCPUS)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%lld CPU workers: expected 1 to %d, or 0 for one per core",
				   (long long)options->cpus, STARPU_MAXCPUS);
	if (options->gpu_memory_limit && options->gpu_memory_limit < (int64_t)SMALTI_MIN_DEVICE * MEGABYTE)
		return smalti_fail(error, SMALTI_EINVAL,
				   "GPU memory limit: expected %d MB or more, found %lld MB",
				   SMALTI_MIN_DEVICE, (long long)(options->gpu_memory_limit / MEGABYTE));
	if (options->memory_limit && options->memory_limit < SMALTI_PROGRAM_BYTES + MIN_TILES)
		return smalti_fail(error, SMALTI_EINVAL,
				   "memory limit: expected %d MB or more, found %lld MB",
				   (SMALTI_PROGRAM_BYTES + MIN_TILES) / MEGABYTE,
				   (long long)(options->memory_limit / MEGABYTE));
	if (smalti_isa_check(error) < 0 || smalti_environment_check(cpus, error) < 0)
		return -1;
	return smalti_policy_check(smalti_session_policy(options), error);
}

/* Returns the maximum number of CPU workers. */
static int max_workers(const struct starpu_conf *conf, const struct smalti_machine_cpus *cpus)
{
	const char *forced = getenv("STARPU_NCPU");
	if (!forced)
		forced = getenv("STARPU_NCPUS");
	if (forced)
		return (int)strtol(forced, NULL, 10);
	return conf->ncpus > 0 ? conf->ncpus : cpus->allowed_cores;
}

/* Returns the bytes that must be there. StarPU asks for ever for promised memory where it can move tiles to a
 * disk: so all of it, what the pool leaves to others, and some for what lies between tiles. */
static int64_t bytes_to_start(const struct smalti_session *session)
{
	return session->offloads ? 3 * START + session->memory_limit + session->memory_limit / 8 : START;
}

/* Leaves a core to each device's worker; some operations run only on CPUs. */
static int cpus_beside(const struct smalti_machine_cpus *cpus, int64_t devices)
{
	return devices < cpus->allowed_cores ? cpus->allowed_cores - (int)devices : 1;
}

/* Returns the default policy. Where workers differ it uses tasks' times: otherwise a slow worker takes long
 * tasks that all wait for. */
static const char *default_policy(const struct smalti_session *session)
{
	return session->device_counts.sum || smalti_slowdown_text() ? "dmdas" : "lws";
}

static int start_starpu(struct smalti_session *session, const struct smalti_session_options *options,
			struct smalti_error *error)
{
	struct starpu_conf conf;
	struct smalti_environment changes = {.count = 0};
	const struct smalti_device_counts *counts = &session->device_counts;
	starpu_conf_init(&conf);
	if (session->replay)
		conf.sched_policy = smalti_replay_policy();
	else
		conf.sched_policy_name = options->policy ? options->policy : default_policy(session);
	conf.ncpus = options->cpus ? (int)options->cpus : smalti_machine_quota(&session->cpus);
	if (conf.ncpus == 0)
		conf.ncpus = counts->sum ? cpus_beside(&session->cpus, counts->sum) : -1;
	smalti_devices_configure(counts, &conf);
	conf.nhip = 0;          /* no codelet has HIP kernels */
	conf.catch_signals = 0; /* signals belong to the program, not to the library */
	if (smalti_ranks_count() > 1) {
		conf.will_use_mpi = 1;
		conf.reserve_ncpus = conf.ncpus < 0 ? 1 : 0; /* for the communicating thread */
	}
	int status = -1;
	if (smalti_threads_try(max_workers(&conf, &session->cpus), bytes_to_start(session), error) == 0 &&
	    (session->codelets = smalti_task_open(counts->sum > 0, error)))
		status = smalti_session_set_variables(session, options, &changes, error);
	smalti_lost_watch(session);
	if (status == 0 && (status = starpu_init(&conf)) != 0) {
		if (status == -ENODEV)
			smalti_fail(error, SMALTI_ENODEV,
				    "StarPU found no worker: allow at least one CPU (STARPU_NCPU)");
		else
			smalti_fail(error, SMALTI_ENODEV, "StarPU did not start: %s", strerror(-status));
		smalti_perf_directory_close(&session->directory);
	}
	smalti_environment_restore(&changes);
	if (status)
		return -1;
	if (smalti_devices_have(counts, SMALTI_DEVICES_PIN) && !session->memory_limit) {
		smalti_pool_pin(session->pool);
		session->memory -= session->memory / 4; /* a pool of pinned pages may keep this unused */
	}
	smalti_tile_memory_open(session->pool, session->offloads);
	return 0;
}

/* Stops StarPU. Drops measurements that it cannot write, which would end the program, and those with a lost
 * device, whose tasks took no time. */
static void stop_starpu(struct smalti_session *session)
{
	if (!smalti_perf_directory_writable(&session->directory) ||
	    smalti_lost_check(&session->lost, NULL) < 0)
		smalti_task_drop_measurements(session->codelets);
	if (session->replay)
		smalti_replay_end(session->replay, NULL);
	smalti_ranks_close();
	smalti_devices_close(session->devices);
	starpu_shutdown();
	smalti_lost_watch(NULL);
	smalti_tile_memory_close();
	smalti_perf_directory_close(&session->directory);
}

/* Prefers the user's variable to the options. */
static void set_memory(struct smalti_session *session, const struct smalti_session_options *options)
{
	const int64_t tiles = smalti_environment_memory();
	session->memory_limit = tiles ? tiles + SMALTI_PROGRAM_BYTES : options->memory_limit;
	session->memory =
	    session->memory_limit ? session->memory_limit : smalti_machine_memory() / smalti_ranks_beside();
	session->offloads = session->memory_limit && options->scratch;
}

static void free_session(struct smalti_session *session)
{
	smalti_trace_free(session->trace);
	smalti_replay_free(session->replay);
	smalti_recent_free(session->recent);
	free(session->codelets);
	free(session->places);
	if (session->rank_facts)
		smalti_place_facts_free(session->rank_facts);
	free(session->rank_facts);
	free(session->counting);
	smalti_pool_free(session->pool);
	smalti_throttle_close(&session->throttle);
	smalti_lost_close(&session->lost);
	free(session->busy);
	free(session->op_counters);
	free(session->ended);
	free(session->slowdown);
	free(session->speeds);
	free(session->transfers);
	smalti_meters_close(session->meters);
	free(session);
}

/* Makes what every session has, whether tasks run in it or not. */
static struct smalti_session *bare_session(struct smalti_error *error)
{
	struct smalti_session *session = smalti_calloc(1, sizeof(*session), error);
	if (!session)
		return NULL;
	smalti_throttle_open(&session->throttle);
	smalti_lost_open(&session->lost);
	session->process = getpid();
	session->workers = session->planned_workers = 1;
	session->task_bytes = INT64_MAX;
	return session;
}

struct smalti_session *smalti_session_open_counting(int places, bool devices, struct smalti_error *error)
{
	struct smalti_session *session = bare_session(error);
	if (session && (session->counting = smalti_counting_new(places, devices, error)))
		return session;
	if (session)
		free_session(session);
	return NULL;
}

/* Makes what every session has in which tasks run, with StarPU or, without options, as a sequential one. */
static struct smalti_session *new_session(const struct smalti_session_options *options,
					  struct smalti_error *error)
{
	struct smalti_session *session = bare_session(error);
	if (!session)
		return NULL;
	if (options)
		set_memory(session, options);
	else
		session->memory = smalti_machine_memory();
	session->pool =
	    smalti_pool_new(session->memory_limit ? session->memory_limit - SMALTI_PROGRAM_BYTES : 0, error);
	if (session->pool)
		return session;
	free_session(session);
	return NULL;
}

static int find_speeds(struct smalti_session *session, struct smalti_error *error)
{
	static const double cpu = 5e10;
	session->speeds = smalti_calloc(session->workers, sizeof(*session->speeds), error);
	if (!session->speeds)
		return -1;
	for (int worker = 0; worker < session->workers; worker++) {
		const struct smalti_device *device = smalti_session_device(session, worker);
		session->speeds[worker] =
		    (device ? smalti_device_speed(device) : cpu) / session->slowdown[worker];
	}
	return 0;
}

/* Fills in what needs a running StarPU. */
static int inspect_starpu(struct smalti_session *session, const struct smalti_session_options *options,
			  struct smalti_error *error)
{
	struct smalti_device_shares min;
	session->workers = (int)starpu_worker_get_count();
	session->lowest_priority = starpu_sched_get_min_priority();
	session->highest_priority = starpu_sched_get_max_priority();
	session->busy = smalti_calloc(session->workers, sizeof(*session->busy), error);
	session->op_counters = smalti_op_counters_new(session->workers, error);
	session->ended = smalti_calloc(session->workers, sizeof(*session->ended), error);
	session->places = smalti_places_new(error);
	session->slowdown = smalti_slowdown_new(error);
	if (smalti_lost_check(&session->lost, error) < 0)
		return -1;
	session->observers[session->observer_count++] = smalti_task_times_observer;
	session->lost.reconsiders = smalti_policy_reconsiders(starpu_sched_get_sched_policy()->policy_name);
	session->devices = smalti_devices_open(&session->device_counts, error);
	session->reproducible = options->reproducible && session->device_counts.sum > 0;
	if (!session->busy || !session->op_counters || !session->ended || !session->slowdown ||
	    !session->places || !session->devices || find_speeds(session, error) < 0 ||
	    smalti_reproducible_check(session, error) < 0 ||
	    (options->scratch && smalti_scratch_open(session, options->scratch, error) < 0))
		return -1;
	smalti_throttle_places(&session->throttle, smalti_places_count(session->places));
	smalti_devices_alone_open(session, smalti_session_policy(options) != NULL);
	smalti_places_smallest(session->places, &min);
	session->task_bytes = min.task;
	session->transfers = smalti_calloc(starpu_bus_get_count(), sizeof(*session->transfers), error);
	session->meters = session->device_counts.sum ? smalti_meters_open(session, error) : NULL;
	if (!session->transfers || (session->device_counts.sum && !session->meters))
		return -1;
	if (session->replay && smalti_replay_begin(session->replay, error) < 0)
		return -1;
	return session->trace ? smalti_trace_start(session->trace, error) : 0;
}

/* Opens the session on this rank. */
static struct smalti_session *open_session(const struct smalti_session_options *options,
					   struct smalti_error *error)
{
	const struct smalti_machine_cpus cpus = smalti_machine_cpus();
	if (check_options(options, &cpus, error) < 0)
		return NULL;
	struct smalti_session *session = new_session(options, error);
	if (!session)
		return NULL;
	session->cpus = cpus;
	const char *schedule = smalti_replay_file(smalti_session_policy(options));
	if (smalti_devices_count(options, &session->device_counts, error) == 0 &&
	    (!options->trace || (session->trace = smalti_trace_new(session, options->trace, error))) &&
	    (!schedule || (session->replay = smalti_replay_open(session, schedule, error))) &&
	    start_starpu(session, options, error) == 0) {
		if (inspect_starpu(session, options, error) == 0)
			return session;
		stop_starpu(session);
	}
	free_session(session);
	return NULL;
}

/* Makes what plans depend on equal on all ranks, or checks that it is. */
static int join_ranks(struct smalti_session *session, struct smalti_error *error)
{
	struct smalti_ranks_vote vote = {.digest = (uint64_t)session->memory_limit};
	vote.digest = 2 * vote.digest + (session->offloads ? 1 : 0);
	if (smalti_ranks_agree(0, &vote, error) < 0)
		return -1;
	session->planned_workers = (int)smalti_ranks_min(session->workers);
	session->memory = smalti_ranks_min(session->memory);
	session->inserts_failed = smalti_ranks_count() > 1;
	if (smalti_ranks_open(smalti_places_speed(session->places, session->speeds, SMALTI_ANYWHERE),
			      !smalti_session_oversubscribes(session), error) < 0)
		return -1;
	return smalti_rank_facts_gather(session, session->trace != NULL, error); /* traces have the links */
}

struct smalti_session *smalti_session_open(const struct smalti_session_options *options,
					   struct smalti_error *error)
{
	SMALTI_REPORT(error);
	static const struct smalti_session_options defaults = SMALTI_SESSION_DEFAULTS;
	struct smalti_session *session = open_session(options ? options : &defaults, error);
	if (smalti_ranks_agree(session ? 0 : -1, NULL, error) == 0 && join_ranks(session, error) == 0) {
		is_open = true;
		return session;
	}
	if (session) {
		stop_starpu(session);
		free_session(session);
	}
	return NULL;
}

struct smalti_session *smalti_session_open_sequential(struct smalti_error *error)
{
	if (check_alone(error) < 0 || smalti_isa_check(error) < 0)
		return NULL;
	struct smalti_session *session = new_session(NULL, error);
	if (!session)
		return NULL;
	session->sequential = true;
	is_open = true;
	return session;
}

int smalti_session_close(struct smalti_session *session, struct smalti_error *error)
{
	if (!session)
		return 0;
	if (smalti_session_check(session, error) < 0)
		return -1;
	int status = 0;
	if (session->counting) {
		free_session(session);
		return 0;
	}
	if (!session->sequential) {
		status = session->replay ? smalti_replay_end(session->replay, error) : 0;
		starpu_task_wait_for_all();
		if (session->trace && smalti_trace_write(session->trace, error) < 0)
			status = -1;
		stop_starpu(session);
	}
	free_session(session);
	is_open = false;
	return status;
}
