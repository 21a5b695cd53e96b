/* SPDX-License-Identifier: Apache-2.0 */
#include "host/environment.h"
#include "base/parse.h"
#include "devices/drivers.h"

#include <limits.h>

#include <starpu.h>

/* Names of whole numbers from 0 on, without STARPU_. */
static const char *const numbers[] = {
    "AUTOHETEROPRIO_FREEZE_GATHERING",
    "AUTOHETEROPRIO_ORDERING_INTERVAL",
    "AUTOHETEROPRIO_PRINT_AFTER_ORDERING",
    "AUTOHETEROPRIO_PRINT_DATA_ON_UPDATE",
    "AUTOHETEROPRIO_PRIORITY_ORDERING_POLICY",
    "AUTOHETEROPRIO_TIME_ESTIMATION_POLICY",
    "BACKOFF_MAX",
    "BACKOFF_MIN",
    "BUS_CALIBRATE",
    "BUS_STATS",
    "CALIBRATE",
    "CALIBRATE_MINIMUM",
    "CATCH_SIGNALS",
    "CODELET_PROFILING",
    "CUDA_ONLY_FAST_ALLOC_OTHER_MEMNODES",
    "CUDA_PIPELINE",
    "CUDA_THREAD_PER_DEV",
    "CUDA_THREAD_PER_WORKER",
    "DATA_LOCALITY_ENFORCE",
    "DISABLE_ASYNCHRONOUS_COPY",
    "DISABLE_ASYNCHRONOUS_CUDA_COPY",
    "DISABLE_ASYNCHRONOUS_OPENCL_COPY",
    "DISABLE_PINNING",
    "DISPLAY_BINDINGS",
    "ENABLE_CUDA_GPU_GPU_DIRECT",
    "ENABLE_MAP",
    "ENERGY_PROFILING",
    "EXPECTED_TRANSFER_TIME_WRITEBACK",
    "FXT_TRACE",
    "GENERATE_TRACE",
    "GLOBAL_ARBITER",
    "HETEROPRIO_CODELET_GROUPING_STRATEGY",
    "HETEROPRIO_USE_AUTO_CALIBRATION",
    "HETEROPRIO_USE_LA",
    "HISTORY_MAX_ERROR",
    "LIMIT_BANDWIDTH",
    "LIMIT_MAX_SUBMITTED_TASKS",
    "LIMIT_MIN_SUBMITTED_TASKS",
    "MAIN_THREAD_BIND",
    "MAX_MEMORY_USE",
    "MAX_PRIO",
    "MAX_WORKERSIZE",
    "MEMORY_STATS",
    "MINIMUM_AVAILABLE_MEM",
    "MINIMUM_CLEAN_BUFFERS",
    "MIN_PRIO",
    "MIN_WORKERSIZE",
    "NCUDA",
    "NHIP",
    "NMAX_FPGA",
    "NMPI_MS",
    "NOPENCL",
    "NTASKS_THRESHOLD",
    "NTCPIP_MS",
    "NWORKER_PER_CUDA",
    "OPENCL_ONLY_ON_CPUS",
    "OPENCL_ON_CPUS",
    "OPENCL_PIPELINE",
    "PERF_MODEL_HOMOGENEOUS_CPU",
    "PREFETCH",
    "PROFILING",
    "RESERVE_NCPU",
    "SCHED_GRAPH_TEST_DESCENDANTS",
    "SCHED_READY",
    "SCHED_SORTED_ABOVE",
    "SCHED_SORTED_BELOW",
    "SILENT",
    "SINGLE_COMBINED_WORKER",
    "STATS",
    "SUBALLOCATOR",
    "SYNTHESIZE_ARITY_COMBINED_WORKER",
    "TARGET_AVAILABLE_MEM",
    "TARGET_CLEAN_BUFFERS",
    "TASK_BREAK_ON_EXEC",
    "TASK_BREAK_ON_POP",
    "TASK_BREAK_ON_PUSH",
    "TASK_BREAK_ON_SCHED",
    "TASK_PROGRESS",
    "TRACE_BUFFER_SIZE",
    "USE_NUMA",
    "WATCHDOG_CRASH",
    "WATCHDOG_DELAY",
    "WORKERS_GETBIND",
    "WORKERS_NOBIND",
    "WORKER_TREE",
};

/* Numbers with a fraction. */
static const char *const fractions[] = {
    "EXP_LEN_THRESHOLD", "IDLE_POWER", "SCHED_ALPHA", "SCHED_BETA", "SCHED_GAMMA", "WINDOW_TIME_SIZE",
};

/* The limits to memory in MB; the first one that is set counts. */
enum { MIN_MEGABYTES = 32 };
static const char *const memory[] = {"STARPU_LIMIT_CPU_NUMA_0_MEM", "STARPU_LIMIT_CPU_NUMA_MEM",
				     "STARPU_LIMIT_CPU_MEM"};

static int refuse(const char *name, const struct smalti_error *cause, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EINVAL, "the environment's %s: %s", name, cause->message);
}

static int check_range(const char *name, int64_t min, int64_t max, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	const char *text = getenv(name);
	int64_t value;
	if (!text || smalti_parse_int64(text, min, max, &value, &cause) == 0)
		return 0;
	return refuse(name, &cause, error);
}

/* The variables that limit the memory of a driver's devices: first that of all devices, then those of
 * each. */
enum { DEVICE_LIMITS = 1 + 64 };
struct name {
	char text[64];
};

static struct name limit_name(int driver, int number)
{
	const struct smalti_device_limit *limit = smalti_devices_limit(driver);
	struct name name;
	if (number == 0)
		snprintf(name.text, sizeof(name.text), "%s", limit->variable);
	else
		snprintf(name.text, sizeof(name.text), "%s_%d_MEM", limit->prefix, number - 1);
	return name;
}

/* Checks devices' limits: StarPU would ask for ever for memory that a device may not have. */
static int check_device_memory(struct smalti_error *error)
{
	for (int driver = 0; driver < SMALTI_DRIVERS; driver++)
		for (int i = 0; i < DEVICE_LIMITS; i++)
			if (check_range(limit_name(driver, i).text, SMALTI_MIN_DEVICE, INT_MAX, error) < 0)
				return -1;
	return 0;
}

bool smalti_environment_limits(int driver, int64_t megabytes)
{
	for (int i = 0; i < DEVICE_LIMITS; i++) {
		const char *text = getenv(limit_name(driver, i).text);
		if (text && strtoll(text, NULL, 10) < megabytes)
			return true;
	}
	return false;
}

static int check_numbers(struct smalti_error *error)
{
	char name[64];
	for (size_t i = 0; i < COUNT_OF(numbers); i++) {
		snprintf(name, sizeof(name), "STARPU_%s", numbers[i]);
		if (check_range(name, 0, INT_MAX, error) < 0)
			return -1;
	}
	for (size_t i = 0; i < COUNT_OF(fractions); i++) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		double value;
		snprintf(name, sizeof(name), "STARPU_%s", fractions[i]);
		const char *text = getenv(name);
		if (text && smalti_parse_double(text, -1e30, 1e30, &value, &cause) < 0)
			return refuse(name, &cause, error);
	}
	for (size_t i = 0; i < COUNT_OF(memory); i++)
		if (check_range(memory[i], MIN_MEGABYTES, INT_MAX, error) < 0)
			return -1;
	return check_device_memory(error);
}

/* Checks processors: the machine decides which values StarPU takes. */
static int check_processors(const struct smalti_machine_cpus *cpus, struct smalti_error *error)
{
	const struct {
		const char *name;
		int min, max;
	} ranges[] = {
	    {"STARPU_NTHREADS_PER_CORE", 1, cpus->threads / cpus->cores},
	    {"STARPU_MAIN_THREAD_CPUID", 0, cpus->threads - 1},
	    {"STARPU_MAIN_THREAD_COREID", 0, cpus->cores - 1},
	    {"STARPU_NCPU", 0, STARPU_MAXCPUS},
	    {"STARPU_NCPUS", 0, STARPU_MAXCPUS},
	    {"STARPU_DISABLE_KERNELS", 0, 0},
	};
	for (size_t i = 0; i < COUNT_OF(ranges); i++)
		if (check_range(ranges[i].name, ranges[i].min, ranges[i].max, error) < 0)
			return -1;
	return 0;
}

/* Checks lists of processors ("0 2-5,7"), and the host. */
static int check_lists(struct smalti_error *error)
{
	static const char *const names[] = {"STARPU_WORKERS_CPUID", "STARPU_WORKERS_COREID",
					    "STARPU_WORKERS_CUDAID", "STARPU_WORKERS_OPENCLID"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const char *text = getenv(names[i]);
		if (text && (*text < '0' || *text > '9' || text[strspn(text, "0123456789-, ")]))
			return smalti_fail(
			    error, SMALTI_EINVAL,
			    "the environment's %s: expected numbers like \"0 2-5\", found '%s'", names[i],
			    text);
	}
	const char *host = getenv("STARPU_HOSTNAME");
	if (host && strchr(host, '/'))
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "the environment's STARPU_HOSTNAME: expected a name without '/', found '%s'", host);
	return 0;
}

/* Refuses a StarPU disk: the session has its own. */
static int check_disk(struct smalti_error *error)
{
	if (!getenv("STARPU_DISK_SWAP"))
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "the environment's STARPU_DISK_SWAP: StarPU ends the program when that disk is full: "
	    "unset it, and name a scratch directory (--scratch) with a memory limit instead");
}

int smalti_environment_check(const struct smalti_machine_cpus *cpus, struct smalti_error *error)
{
	if (check_numbers(error) < 0 || check_processors(cpus, error) < 0 || check_disk(error) < 0)
		return -1;
	return check_lists(error);
}

int64_t smalti_environment_memory(void)
{
	for (size_t i = 0; i < COUNT_OF(memory); i++) {
		const char *megabytes = getenv(memory[i]);
		if (megabytes)
			return (int64_t)strtoll(megabytes, NULL, 10) << 20;
	}
	return 0;
}

int smalti_environment_set(struct smalti_environment *environment, const char *name, const char *value,
			   struct smalti_error *error)
{
	const char *before = getenv(name);
	char *kept = before ? smalti_format(error, "%s", before) : NULL;
	if (before && !kept)
		return -1;
	if (environment->count == SMALTI_MAX_CHANGES ||
	    (value ? setenv(name, value, 1) : unsetenv(name)) < 0) {
		free(kept);
		return smalti_fail(error, SMALTI_ENOMEM, "the environment's %s cannot be changed", name);
	}
	environment->changes[environment->count].name = name;
	environment->changes[environment->count++].before = kept;
	return 0;
}

int smalti_environment_hide_memory(struct smalti_environment *environment, struct smalti_error *error)
{
	for (size_t i = 0; i < COUNT_OF(memory); i++)
		if (smalti_environment_set(environment, memory[i], NULL, error) < 0)
			return -1;
	return 0;
}

int smalti_environment_hide_plugin(struct smalti_environment *environment, struct smalti_error *error)
{
	static const char name[] = "HWLOC_PLUGINS_BLACKLIST";
	return getenv(name) ? 0 : smalti_environment_set(environment, name, "hwloc_opencl.so", error);
}

/* Restores the last change first: a name may be there twice. */
void smalti_environment_restore(struct smalti_environment *environment)
{
	while (environment->count) {
		const char *name = environment->changes[--environment->count].name;
		char *before = environment->changes[environment->count].before;
		if (before)
			setenv(name, before, 1);
		else
			unsetenv(name);
		free(before);
	}
}
