/* SPDX-License-Identifier: Apache-2.0 */
#include "session/variables.h"
#include "devices/drivers.h"
#include "ranks/ranks.h"
#include "rt/slowdown.h"
#include "session/policies.h"

enum { MEGABYTE = 1 << 20 };

const char *smalti_session_policy(const struct smalti_session_options *options)
{
	const char *chosen = getenv("STARPU_SCHED");
	return chosen ? chosen : options->policy;
}

bool smalti_session_oversubscribes(const struct smalti_session *session)
{
	return smalti_ranks_beside() * session->cpus.allowed_cores > session->cpus.cores;
}

/* Tells whether devices have little memory whose memory StarPU takes in pieces: it asks for the next piece
 * for ever. */
static bool has_little(const struct smalti_session *session)
{
	enum { ENOUGH = 4096 };
	for (int driver = 0; driver < SMALTI_DRIVERS; driver++)
		if (smalti_driver_has(driver, SMALTI_DEVICES_PIECES) &&
		    smalti_environment_limits(driver, ENOUGH))
			return true;
	return smalti_devices_min_memory(&session->device_counts, SMALTI_DEVICES_PIECES) <
	       (int64_t)ENOUGH * MEGABYTE;
}

static int limit_devices(const struct smalti_session *session, int64_t bytes,
			 struct smalti_environment *changes, struct smalti_error *error)
{
	char megabytes[32];
	snprintf(megabytes, sizeof(megabytes), "%lld", (long long)(bytes / MEGABYTE));
	for (int driver = 0; bytes && driver < SMALTI_DRIVERS; driver++) {
		const char *all = smalti_devices_limit(driver)->variable;
		if (!getenv(all) && smalti_environment_set(changes, all, megabytes, error) < 0)
			return -1;
	}
	if (!has_little(session) || getenv("STARPU_SUBALLOCATOR"))
		return 0;
	return smalti_environment_set(changes, "STARPU_SUBALLOCATOR", "0", error);
}

/* Keeps idle workers from copying new data on devices to main memory in advance. Where devices' memory is not
 * limited those transfers are useless. */
static int leave_tiles(struct smalti_environment *changes, struct smalti_error *error)
{
	static const char *const shares[] = {"STARPU_MINIMUM_CLEAN_BUFFERS", "STARPU_TARGET_CLEAN_BUFFERS"};
	for (int driver = 0; driver < SMALTI_DRIVERS; driver++)
		if (smalti_environment_limits(driver, INT64_MAX))
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

static int unbind(const struct smalti_session *session, struct smalti_environment *changes,
		  struct smalti_error *error)
{
	static const char variable[] = "STARPU_WORKERS_NOBIND";
	if (!smalti_session_oversubscribes(session) || getenv(variable))
		return 0;
	return smalti_environment_set(changes, variable, "1", error);
}

int smalti_session_set_variables(struct smalti_session *session, const struct smalti_session_options *options,
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
	    name_library(smalti_session_policy(options), changes, error) < 0 ||
	    unbind(session, changes, error) < 0)
		return -1;
	return smalti_perf_directory_open(&session->directory, changes, error);
}
