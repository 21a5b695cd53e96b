/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/session.h"

#include "base/alloc.h"
#include "kernels/isa.h"
#include "rt/environment.h"
#include "rt/machine.h"
#include "rt/perf_directory.h"
#include "rt/policies.h"
#include "rt/pool.h"
#include "rt/task.h"
#include "rt/threads.h"
#include "rt/tile_memory.h"
#include "rt/trace.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <starpu.h>
#include <xxhash.h>

enum {
	MEGABYTE = 1 << 20,
	LEAST_TILES = 32 * MEGABYTE,
	START = 64 * MEGABYTE, /* what StarPU takes when it starts, well counted */
};

struct smalti_session {
	struct smalti_perf_directory directory;
	struct smalti_machine_cpus cpus;
	int workers;
	int64_t memory_limit, memory;
	pid_t process;
	bool offloads, plain;
	int lowest_priority, highest_priority;
	struct smalti_trace *trace;
	struct smalti_codelet *codelets;
	_Atomic int64_t tiles; /* made so far */
	uint64_t sequence;     /* hash of what was inserted */
};

static bool is_open; /* StarPU is one per process */

void smalti_session_defaults(struct smalti_session_options *options)
{
	*options = (struct smalti_session_options){0};
}

int smalti_session_workers(const struct smalti_session *session)
{
	return session->workers;
}

int smalti_session_places(const struct smalti_session *session)
{
	const struct smalti_machine_cpus *cpus = &session->cpus;
	return session->plain ? 1 : cpus->allowed_cores * (cpus->threads / cpus->cores);
}

void smalti_session_sleep(const struct smalti_session *session)
{
	if (!session->plain)
		starpu_pause();
}

void smalti_session_wake(const struct smalti_session *session)
{
	if (!session->plain)
		starpu_resume();
}

int64_t smalti_session_memory_limit(const struct smalti_session *session)
{
	return session->memory_limit;
}

int64_t smalti_session_memory(const struct smalti_session *session)
{
	return session->memory;
}

bool smalti_session_offloads(const struct smalti_session *session)
{
	return session->offloads;
}

bool smalti_session_plain(const struct smalti_session *session)
{
	return session->plain;
}

int smalti_session_check(const struct smalti_session *session, struct smalti_error *error)
{
	if (session->process == getpid())
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "the session is process %ld's, and its threads are not here: open sessions after fork()",
	    (long)session->process);
}

struct smalti_trace *smalti_session_trace(const struct smalti_session *session)
{
	return session->trace;
}

int smalti_session_priority(const struct smalti_session *session, int64_t wanted)
{
	if (wanted < session->lowest_priority)
		return session->lowest_priority;
	return wanted > session->highest_priority ? session->highest_priority : (int)wanted;
}

struct smalti_codelet *smalti_session_codelets(const struct smalti_session *session)
{
	return session->codelets;
}

int64_t smalti_session_count_tile(struct smalti_session *session)
{
	return atomic_fetch_add(&session->tiles, 1) + 1;
}

void smalti_session_record(struct smalti_session *session, uint32_t arguments, const int64_t *numbers,
			   int count)
{
	session->sequence = XXH64(numbers, (size_t)count * sizeof(*numbers), session->sequence + arguments);
}

uint64_t smalti_session_sequence(const struct smalti_session *session)
{
	return session->sequence;
}

static int refuse_scratch(const char *directory, struct smalti_error *error)
{
	return smalti_fail(
	    error, SMALTI_EIO,
	    "scratch directory '%s' cannot be used: it must exist, be writable and have 16 MB free",
	    directory);
}

/* StarPU ends the process over a directory that it cannot write to, so try it first. */
static int check_scratch(const char *directory, struct smalti_error *error)
{
	struct stat info;
	if (stat(directory, &info) < 0 || !S_ISDIR(info.st_mode) || access(directory, W_OK | X_OK) < 0)
		return refuse_scratch(directory, error);
	return 0;
}

/* What does not fit under the limit goes to a file in `directory`; StarPU's disk node moves it. */
static int add_scratch_disk(const struct smalti_session_options *options, struct smalti_error *error)
{
	if (!options->scratch)
		return 0;
	char *directory = smalti_format(error, "%s", options->scratch); /* StarPU wants it writable */
	if (!directory)
		return -1;
	int node = starpu_disk_register(&starpu_disk_unistd_ops, directory, (starpu_ssize_t)-1);
	free(directory);
	return node < 0 ? refuse_scratch(options->scratch, error) : 0;
}

static int check_alone(struct smalti_error *error)
{
	if (!is_open)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "a session is open already: StarPU allows one per process");
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
	if (options->scratch && check_scratch(options->scratch, error) < 0)
		return -1;
	if (options->memory_limit && options->memory_limit < SMALTI_PROGRAM_BYTES + LEAST_TILES)
		return smalti_fail(error, SMALTI_EINVAL,
				   "memory limit: expected %d MB or more, found %lld MB",
				   (SMALTI_PROGRAM_BYTES + LEAST_TILES) / MEGABYTE,
				   (long long)(options->memory_limit / MEGABYTE));
	if (smalti_isa_check(error) < 0 || smalti_environment_check(cpus, error) < 0)
		return -1;
	const char *chosen = getenv("STARPU_SCHED");
	return smalti_policy_check(chosen ? chosen : options->policy, error);
}

static int change_environment(struct smalti_session *session, struct smalti_environment *changes,
			      struct smalti_error *error)
{
	char megabytes[32] = "0"; /* StarPU refuses nothing: who inserts tasks keeps to the memory there is */
	if (session->offloads)
		snprintf(
		    megabytes, sizeof(megabytes), "%lld",
		    (long long)((session->memory_limit - SMALTI_PROGRAM_BYTES + MEGABYTE - 1) / MEGABYTE));
	if (!getenv("STARPU_SILENT") && smalti_environment_set(changes, "STARPU_SILENT", "1", error) < 0)
		return -1;
	if (smalti_environment_hide_memory(changes, error) < 0 ||
	    smalti_environment_set(changes, "STARPU_LIMIT_CPU_MEM", megabytes, error) < 0)
		return -1;
	return smalti_perf_directory_open(&session->directory, changes, error);
}

/* How many workers it will be at most. */
static int most_workers(const struct starpu_conf *conf, const struct smalti_machine_cpus *cpus)
{
	const char *forced = getenv("STARPU_NCPU");
	if (!forced)
		forced = getenv("STARPU_NCPUS");
	if (forced)
		return (int)strtol(forced, NULL, 10);
	return conf->ncpus > 0 ? conf->ncpus : cpus->allowed_cores;
}

/* StarPU asks for ever for memory that it was promised, where it can move tiles to a disk to make room: so
 * all of it has to be there, what the pool leaves to others, and some for what lies between tiles. */
static int64_t bytes_to_start(const struct smalti_session *session)
{
	return session->offloads ? 3 * START + session->memory_limit + session->memory_limit / 8 : START;
}

static int start_starpu(struct smalti_session *session, const struct smalti_session_options *options,
			struct smalti_error *error)
{
	struct starpu_conf conf;
	struct smalti_environment changes = {.count = 0};
	starpu_conf_init(&conf);
	conf.sched_policy_name = options->policy ? options->policy : "lws";
	conf.ncpus = options->cpus ? (int)options->cpus : smalti_machine_quota(&session->cpus);
	conf.ncpus = conf.ncpus ? conf.ncpus : -1;
	conf.ncuda = conf.nopencl = conf.nhip = 0; /* no codelet has a kernel for them */
	conf.catch_signals = 0;                    /* signals are the program's, not the library's */
	int status = -1;
	if (smalti_threads_try(most_workers(&conf, &session->cpus), bytes_to_start(session), error) == 0 &&
	    (session->codelets = smalti_task_open(error)))
		status = change_environment(session, &changes, error);
	if (status == 0 && (status = starpu_init(&conf)) != 0) {
		if (status == -ENODEV)
			smalti_fail(error, SMALTI_ENODEV,
				    "StarPU found no worker: allow at least one CPU (STARPU_NCPU)");
		else
			smalti_fail(error, SMALTI_ENODEV, "StarPU did not start: %s", strerror(-status));
		smalti_perf_directory_close(&session->directory);
	}
	smalti_environment_restore(&changes);
	if (status) {
		smalti_task_close(session->codelets);
		return -1;
	}
	smalti_tile_memory_open(session->memory_limit ? session->memory_limit - SMALTI_PROGRAM_BYTES : 0,
				session->offloads);
	return 0;
}

/* StarPU ends the program over a measurement that it cannot write. */
static void stop_starpu(struct smalti_session *session)
{
	if (!smalti_perf_directory_writable(&session->directory))
		smalti_task_drop_measurements(session->codelets);
	starpu_shutdown();
	smalti_tile_memory_close();
	smalti_task_close(session->codelets);
	smalti_perf_directory_close(&session->directory);
}

/* The user's variable wins over the options. */
static void set_memory(struct smalti_session *session, const struct smalti_session_options *options)
{
	const int64_t tiles = smalti_environment_memory();
	session->memory_limit = tiles ? tiles + SMALTI_PROGRAM_BYTES : options->memory_limit;
	session->memory = session->memory_limit ? session->memory_limit : smalti_machine_memory();
	session->offloads = session->memory_limit && (options->scratch || getenv("STARPU_DISK_SWAP"));
}

struct smalti_session *smalti_session_open(const struct smalti_session_options *options,
					   struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_session_options defaults;
	smalti_session_defaults(&defaults);
	options = options ? options : &defaults;
	const struct smalti_machine_cpus cpus = smalti_machine_cpus();
	if (check_options(options, &cpus, error) < 0)
		return NULL;
	struct smalti_session *session = smalti_calloc(1, sizeof(*session), error);
	if (!session)
		return NULL;
	if (options->trace && !(session->trace = smalti_trace_new(options->trace, error)))
		goto free_session;
	session->cpus = cpus;
	set_memory(session, options);
	if (start_starpu(session, options, error) < 0)
		goto free_trace;
	session->process = getpid();
	session->workers = (int)starpu_worker_get_count();
	session->lowest_priority = starpu_sched_get_min_priority();
	session->highest_priority = starpu_sched_get_max_priority();
	if (add_scratch_disk(options, error) < 0)
		goto stop;
	if (session->trace && smalti_trace_start(session->trace, error) < 0)
		goto stop;
	is_open = true;
	return session;

stop:
	stop_starpu(session);
free_trace:
	smalti_trace_free(session->trace);
free_session:
	free(session);
	return NULL;
}

struct smalti_session *smalti_session_open_plain(struct smalti_error *error)
{
	if (check_alone(error) < 0 || smalti_isa_check(error) < 0)
		return NULL;
	struct smalti_session *session = smalti_calloc(1, sizeof(*session), error);
	if (!session)
		return NULL;
	session->workers = 1;
	session->plain = true;
	session->process = getpid();
	session->memory = smalti_machine_memory();
	smalti_pool_open(0);
	is_open = true;
	return session;
}

static void close_plain(struct smalti_session *session)
{
	smalti_pool_close();
	free(session);
	is_open = false;
}

int smalti_session_close(struct smalti_session *session, struct smalti_error *error)
{
	if (!session)
		return 0;
	if (smalti_session_check(session, error) < 0)
		return -1;
	if (session->plain) {
		close_plain(session);
		return 0;
	}
	starpu_task_wait_for_all();
	int status = session->trace ? smalti_trace_write(session->trace, error) : 0;
	stop_starpu(session);
	smalti_trace_free(session->trace);
	free(session);
	is_open = false;
	return status;
}
