/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/isa.h"
#include "rt/counting.h"
#include "rt/device.h"
#include "rt/device_use.h"
#include "rt/devices_alone.h"
#include "rt/environment.h"
#include "rt/op_use.h"
#include "rt/place_facts.h"
#include "rt/places.h"
#include "rt/policies.h"
#include "rt/pool.h"
#include "rt/ranks.h"
#include "rt/recent.h"
#include "rt/replay.h"
#include "rt/reproducible.h"
#include "rt/scratch.h"
#include "rt/session.h"
#include "rt/slowdown.h"
#include "rt/task.h"
#include "rt/task_times.h"
#include "rt/threads.h"
#include "rt/tile_memory.h"
#include "rt/trace.h"
#include "rt/transfers.h"

#include <sys/stat.h>

#include <starpu.h>

enum {
	MEGABYTE = 1 << 20,
	MIN_TILES = 32 * MEGABYTE,
	START = 64 * MEGABYTE, /* a generous estimate of what StarPU takes when it starts */
};

static bool is_open; /* StarPU allows one session per process */

void smalti_session_defaults(struct smalti_session_options *options)
{
	*options = (struct smalti_session_options){.cuda = -1};
}

static int check_alone(struct smalti_error *error)
{
	if (!is_open)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "a session is open already: StarPU allows one per process; "
			   "use that one, or close it");
}

/* Returns the policy that was chosen, first in the environment; NULL: none. */
static const char *chosen_policy(const struct smalti_session_options *options)
{
	const char *chosen = getenv("STARPU_SCHED");
	return chosen ? chosen : options->policy;
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
	return smalti_policy_check(chosen_policy(options), error);
}

/* Turns off StarPU's suballocator where devices have little memory: it takes CUDA's memory in pieces of 128
 * MB, and asks for the next piece for ever. */
static int cut_no_pieces(const struct smalti_session *session, struct smalti_environment *changes,
			 struct smalti_error *error)
{
	enum { ENOUGH = 4096 };
	const bool little = smalti_environment_limits_devices(SMALTI_CUDA_DEVICES, ENOUGH) ||
			    (session->device_counts.of[SMALTI_CUDA_DEVICES] > 0 &&
			     smalti_devices_min_memory(SMALTI_CUDA_DEVICES) < (int64_t)ENOUGH * MEGABYTE);
	if (!little || getenv("STARPU_SUBALLOCATOR"))
		return 0;
	return smalti_environment_set(changes, "STARPU_SUBALLOCATOR", "0", error);
}

static int limit_devices(const struct smalti_session *session, int64_t bytes,
			 struct smalti_environment *changes, struct smalti_error *error)
{
	char megabytes[32];
	snprintf(megabytes, sizeof(megabytes), "%lld", (long long)(bytes / MEGABYTE));
	for (int driver = 0; bytes && driver < SMALTI_DEVICE_DRIVERS; driver++) {
		const struct smalti_device_limit *limit = smalti_devices_limit(driver);
		if (!getenv(limit->variable) &&
		    smalti_environment_set(changes, limit->variable, megabytes, error) < 0)
			return -1;
	}
	return cut_no_pieces(session, changes, error);
}

/* Keeps idle workers from copying new data on devices to main memory in advance. Where devices' memory is not
 * limited those transfers are useless. */
static int leave_tiles(struct smalti_environment *changes, struct smalti_error *error)
{
	static const char *const shares[] = {"STARPU_MINIMUM_CLEAN_BUFFERS", "STARPU_TARGET_CLEAN_BUFFERS"};
	for (int driver = 0; driver < SMALTI_DEVICE_DRIVERS; driver++)
		if (smalti_environment_limits_devices(driver, INT64_MAX))
			return 0;
	for (size_t i = 0; i < COUNT_OF(shares); i++)
		if (!getenv(shares[i]) && smalti_environment_set(changes, shares[i], "0", error) < 0)
			return -1;
	return 0;
}

/* Hides OpenCL from StarPU and hwloc, which look for its devices in any case. PoCL ends a program that has
 * too little memory for a device, or no /sys. */
static int hide_opencl(const struct smalti_session_options *options, struct smalti_environment *changes,
		       struct smalti_error *error)
{
	static const int64_t enough = 1 << 30;
	if (options->opencl > 0)
		return 0;
	if (smalti_environment_hide_plugin(changes, error) < 0)
		return -1;
	if (smalti_machine_memory() >= enough)
		return 0;
	return smalti_environment_set(changes, "OCL_ICD_VENDORS", "/dev/null", error);
}

/* Has one measurement replace the estimate, and CPUs measured one by one if some are slowed down. */
static int set_measuring(struct smalti_environment *changes, struct smalti_error *error)
{
	static const char min[] = "STARPU_CALIBRATE_MINIMUM",
			  homogeneous[] = "STARPU_PERF_MODEL_HOMOGENEOUS_CPU";
	if (!getenv(min) && smalti_environment_set(changes, min, "1", error) < 0)
		return -1;
	if (!smalti_slowdown_text() || getenv(homogeneous))
		return 0;
	return smalti_environment_set(changes, homogeneous, "0", error);
}

/* Names the library of a shipped policy, by which StarPU finds it. */
static int name_library(const char *policy, struct smalti_environment *changes, struct smalti_error *error)
{
	char path[PATH_MAX];
	if (!smalti_policy_library(policy, path))
		return 0;
	return smalti_environment_set(changes, "STARPU_SCHED_LIB", path, error);
}

/* Tells whether ranks may run on the same cores. Bound threads would all be on the first of them. */
static bool oversubscribes(const struct smalti_session *session)
{
	return smalti_ranks_beside() * session->cpus.allowed_cores > session->cpus.cores;
}

static int unbind(const struct smalti_session *session, struct smalti_environment *changes,
		  struct smalti_error *error)
{
	static const char variable[] = "STARPU_WORKERS_NOBIND";
	if (!oversubscribes(session) || getenv(variable))
		return 0;
	return smalti_environment_set(changes, variable, "1", error);
}

static int change_environment(struct smalti_session *session, const struct smalti_session_options *options,
			      struct smalti_environment *changes, struct smalti_error *error)
{
	char megabytes[32] = "0"; /* no limit: the code that inserts tasks keeps within the memory */
	if (session->offloads)
		snprintf(megabytes, sizeof(megabytes), "%" PRId64,
			 smalti_round_up(session->memory_limit - SMALTI_PROGRAM_BYTES, MEGABYTE) / MEGABYTE);
	if (!getenv("STARPU_SILENT") && smalti_environment_set(changes, "STARPU_SILENT", "1", error) < 0)
		return -1;
	if (smalti_environment_hide_memory(changes, error) < 0 ||
	    smalti_environment_set(changes, "STARPU_LIMIT_CPU_MEM", megabytes, error) < 0 ||
	    hide_opencl(options, changes, error) < 0 ||
	    limit_devices(session, options->gpu_memory_limit, changes, error) < 0 ||
	    leave_tiles(changes, error) < 0 || set_measuring(changes, error) < 0 ||
	    name_library(chosen_policy(options), changes, error) < 0 || unbind(session, changes, error) < 0)
		return -1;
	return smalti_perf_directory_open(&session->directory, changes, error);
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
	conf.nopencl = (int)counts->of[SMALTI_OPENCL_DEVICES];
	conf.ncuda = (int)counts->of[SMALTI_CUDA_DEVICES];
	conf.nhip = 0;          /* no codelet has HIP kernels */
	conf.catch_signals = 0; /* signals belong to the program, not to the library */
	if (smalti_ranks_count() > 1) {
		conf.will_use_mpi = 1;
		conf.reserve_ncpus = conf.ncpus < 0 ? 1 : 0; /* for the communicating thread */
	}
	int status = -1;
	if (smalti_threads_try(max_workers(&conf, &session->cpus), bytes_to_start(session), error) == 0 &&
	    (session->codelets = smalti_task_open(counts->sum > 0, error)))
		status = change_environment(session, options, &changes, error);
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
	if (counts->of[SMALTI_CUDA_DEVICES] && !session->memory_limit) {
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

static int64_t min_task_bytes(const struct smalti_session *session)
{
	int64_t min = INT64_MAX;
	for (int worker = 0; worker < session->workers; worker++)
		if (session->devices[worker]) {
			const unsigned node = starpu_worker_get_memory_node((unsigned)worker);
			min = smalti_min(min, smalti_device_shares(node).task);
		}
	return min;
}

/* Fills in what needs a running StarPU. */
static int inspect_starpu(struct smalti_session *session, const struct smalti_session_options *options,
			  struct smalti_error *error)
{
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
	smalti_devices_alone_open(session, chosen_policy(options) != NULL);
	session->task_bytes = min_task_bytes(session);
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
	const char *schedule = smalti_replay_file(chosen_policy(options));
	const int64_t wanted[SMALTI_DEVICE_DRIVERS] = {
	    [SMALTI_OPENCL_DEVICES] = options->opencl, [SMALTI_CUDA_DEVICES] = options->cuda};
	if (smalti_devices_count(wanted, &session->device_counts, error) == 0 &&
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
	return smalti_ranks_open(smalti_places_speed(session->places, session->speeds, SMALTI_ANYWHERE),
				 !oversubscribes(session), error);
}

struct smalti_session *smalti_session_open(const struct smalti_session_options *options,
					   struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_session_options defaults;
	smalti_session_defaults(&defaults);
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
