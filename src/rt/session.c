/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/session.h"

#include "base/alloc.h"
#include "kernels/isa.h"
#include "rt/pool.h"
#include "rt/task.h"
#include "rt/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <starpu.h>

enum { MEGABYTE = 1 << 20, LEAST_TILES = 32 * MEGABYTE };

struct smalti_session {
	int workers;
	int64_t memory_limit;
	bool spills, plain;
	int lowest_priority, highest_priority;
	struct smalti_trace *trace;
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
	if (session->memory_limit)
		return session->memory_limit;
	return sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

bool smalti_session_spills(const struct smalti_session *session)
{
	return session->spills;
}

bool smalti_session_plain(const struct smalti_session *session)
{
	return session->plain;
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

/* StarPU ends the process over an unknown policy, so ask it first. */
static int check_policy(const char *name, struct smalti_error *error)
{
	char known[SMALTI_ERROR_LENGTH / 2] = "";
	for (struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies(); *policy;
	     policy++) {
		if (strcmp((*policy)->policy_name, name) == 0)
			return 0;
		size_t used = strlen(known);
		snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
			 (*policy)->policy_name);
	}
	return smalti_fail(error, SMALTI_EINVAL, "scheduling policy '%s' is not known to StarPU; it has: %s",
			   name, known);
}

static int refuse_scratch(const char *folder, struct smalti_error *error)
{
	return smalti_fail(
	    error, SMALTI_EIO,
	    "scratch folder '%s' cannot be used: it must exist, be writable and have 16 MB free", folder);
}

/* StarPU ends the process over a folder that it cannot write to, so try it first. */
static int check_scratch(const char *folder, struct smalti_error *error)
{
	struct stat info;
	if (stat(folder, &info) < 0 || !S_ISDIR(info.st_mode) || access(folder, W_OK | X_OK) < 0)
		return refuse_scratch(folder, error);
	return 0;
}

/* What does not fit under the limit goes to a file in `folder`; StarPU's disk node moves it. */
static int add_scratch_disk(const struct smalti_session_options *options, struct smalti_error *error)
{
	if (!options->scratch)
		return 0;
	char *folder = smalti_format(error, "%s", options->scratch); /* StarPU wants it writable */
	if (!folder)
		return -1;
	int node = starpu_disk_register(&starpu_disk_unistd_ops, folder, (starpu_ssize_t)-1);
	free(folder);
	return node < 0 ? refuse_scratch(options->scratch, error) : 0;
}

/* starpu_init() with a limit to what it allocates, which it takes from the environment only: the user's, or
 * the session's for as long as it starts. */
static int init_limited(struct starpu_conf *conf, int64_t limit)
{
	static const char variable[] = "STARPU_LIMIT_CPU_MEM";
	if (!limit || getenv(variable))
		return starpu_init(conf);
	char megabytes[32];
	snprintf(megabytes, sizeof(megabytes), "%lld", (long long)((limit + MEGABYTE - 1) / MEGABYTE));
	setenv(variable, megabytes, 1);
	int status = starpu_init(conf);
	unsetenv(variable);
	return status;
}

static int check_alone(struct smalti_error *error)
{
	if (!is_open)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "a session is open already: StarPU allows one per process");
}

static int check_options(const struct smalti_session_options *options, struct smalti_error *error)
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
	if (smalti_isa_check(error) < 0)
		return -1;
	const char *chosen = getenv("STARPU_SCHED");
	if (!chosen)
		chosen = options->policy;
	return chosen ? check_policy(chosen, error) : 0;
}

static int take_tile(unsigned node, void **memory, size_t bytes, int flags)
{
	(void)node, (void)flags;
	*memory = smalti_pool_take((int64_t)bytes);
	return *memory ? 0 : -ENOMEM;
}

static int give_tile(unsigned node, void *memory, size_t bytes, int flags)
{
	(void)node, (void)bytes, (void)flags;
	smalti_pool_give(memory);
	return 0;
}

/* With several NUMA nodes StarPU places memory itself. */
static void open_pool(const struct smalti_session_options *options)
{
	const int64_t limit = options->memory_limit;
	smalti_pool_open(limit ? limit - SMALTI_PROGRAM_BYTES : 0);
	if (SMALTI_POOLED && starpu_memory_nodes_get_numa_count() == 1)
		starpu_malloc_set_hooks(take_tile, give_tile);
}

static void close_pool(void)
{
	starpu_malloc_set_hooks(NULL, NULL);
	smalti_pool_close();
}

static int start_starpu(const struct smalti_session_options *options, struct smalti_error *error)
{
	struct starpu_conf conf;
	starpu_conf_init(&conf);
	conf.sched_policy_name = options->policy ? options->policy : "lws";
	conf.ncpus = options->cpus ? (int)options->cpus : -1;
	conf.ncuda = conf.nopencl = conf.nhip = 0; /* no codelet has a kernel for them */
	conf.catch_signals = 0;                    /* signals are the program's, not the library's */
	setenv("STARPU_SILENT", "1", 0);
	int status = init_limited(&conf, options->scratch && options->memory_limit
					     ? options->memory_limit - SMALTI_PROGRAM_BYTES
					     : 0);
	if (status == -ENODEV)
		return smalti_fail(error, SMALTI_ENODEV,
				   "StarPU found no worker: allow at least one CPU (STARPU_NCPU)");
	if (status)
		return smalti_fail(error, SMALTI_ENODEV, "StarPU did not start: %s", strerror(-status));
	open_pool(options);
	return 0;
}

struct smalti_session *smalti_session_open(const struct smalti_session_options *options,
					   struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_session_options defaults;
	smalti_session_defaults(&defaults);
	options = options ? options : &defaults;
	if (check_options(options, error) < 0)
		return NULL;
	struct smalti_session *session = smalti_calloc(1, sizeof(*session), error);
	if (!session)
		return NULL;
	if (options->trace && !(session->trace = smalti_trace_new(options->trace, error)))
		goto free_session;
	if (start_starpu(options, error) < 0)
		goto free_trace;
	session->workers = (int)starpu_worker_get_count();
	session->memory_limit = options->memory_limit;
	session->spills = options->memory_limit && options->scratch;
	session->lowest_priority = starpu_sched_get_min_priority();
	session->highest_priority = starpu_sched_get_max_priority();
	if (add_scratch_disk(options, error) < 0)
		goto stop_starpu;
	if (session->trace && smalti_trace_start(session->trace, error) < 0)
		goto stop_starpu;
	is_open = true;
	return session;

stop_starpu:
	starpu_shutdown();
	close_pool();
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
	if (session->plain) {
		close_plain(session);
		return 0;
	}
	starpu_task_wait_for_all();
	int status = session->trace ? smalti_trace_write(session->trace, error) : 0;
	starpu_shutdown();
	close_pool();
	smalti_task_forget_codelets();
	smalti_trace_free(session->trace);
	free(session);
	is_open = false;
	return status;
}
