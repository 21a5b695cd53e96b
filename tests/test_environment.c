/* SPDX-License-Identifier: Apache-2.0
 *
 * What the environment says is used, or refused with a message; StarPU ends the program over much of it. */
#include "base/file.h"
#include "harness.h"
#include "host/cgroup.h"
#include "host/machine.h"
#include "rt/session.h"
#include "rt/task_group.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH = 512 };

static void close_session(struct smalti_session *session)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

/* With one variable set, which is as it was afterwards. */
static struct smalti_session *open_with(const char *name, const char *value, struct smalti_error *error)
{
	const struct smalti_session_options options = {.cpus = 1};
	char *before = getenv(name) ? strdup(getenv(name)) : NULL;
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	struct smalti_session *session = smalti_session_open(&options, error);
	const char *after = getenv(name);
	CHECK(value ? after && strcmp(after, value) == 0 : !after, name);
	if (before)
		setenv(name, before, 1);
	else
		unsetenv(name);
	free(before);
	return session;
}

static void refused(void)
{
	static const struct {
		const char *name, *value;
		enum smalti_code code;
		const char *word;
	} cases[] = {
	    {"STARPU_NCPU", "abc", SMALTI_EINVAL, "'abc'"},
	    {"STARPU_NCPU", "", SMALTI_EINVAL, "whole number"},
	    {"STARPU_NCPU", "-3", SMALTI_EINVAL, "'-3'"},
	    {"STARPU_NCPU", "99999999999", SMALTI_EINVAL, "99999999999"},
	    {"STARPU_NCPU", "0", SMALTI_ENODEV, "worker"},
	    {"STARPU_NCPUS", "1x", SMALTI_EINVAL, "'1x'"},
	    {"STARPU_NTHREADS_PER_CORE", "999", SMALTI_EINVAL, "999"},
	    {"STARPU_NTHREADS_PER_CORE", "0", SMALTI_EINVAL, "from 1"},
	    {"STARPU_MAIN_THREAD_CPUID", "99999", SMALTI_EINVAL, "99999"},
	    {"STARPU_MAIN_THREAD_COREID", "99999", SMALTI_EINVAL, "99999"},
	    {"STARPU_DISABLE_KERNELS", "1", SMALTI_EINVAL, "'1'"},
	    {"STARPU_WORKERS_CPUID", "x", SMALTI_EINVAL, "'x'"},
	    {"STARPU_WORKERS_COREID", "", SMALTI_EINVAL, "numbers"},
	    {"STARPU_BACKOFF_MAX", "-1", SMALTI_EINVAL, "'-1'"},
	    {"STARPU_PREFETCH", "yes", SMALTI_EINVAL, "'yes'"},
	    {"STARPU_TRACE_BUFFER_SIZE", "x", SMALTI_EINVAL, "'x'"},
	    {"STARPU_SCHED_ALPHA", "x", SMALTI_EINVAL, "'x'"},
	    {"STARPU_HOSTNAME", "a/b", SMALTI_EINVAL, "'a/b'"},
	    {"STARPU_LIMIT_CPU_MEM", "1", SMALTI_EINVAL, "from 32"},
	    {"STARPU_LIMIT_CPU_NUMA_MEM", "1", SMALTI_EINVAL, "from 32"},
	    {"STARPU_LIMIT_OPENCL_MEM", "1", SMALTI_EINVAL, "from 2"},
	    {"STARPU_LIMIT_CUDA_MEM", "1", SMALTI_EINVAL, "from 2"},
	    {"STARPU_LIMIT_OPENCL_1_MEM", "x", SMALTI_EINVAL, "'x'"},
	    {"STARPU_OPENCL_ON_CPUS", "yes", SMALTI_EINVAL, "'yes'"},
	    {"STARPU_PERF_MODEL_DIR", "/proc/none", SMALTI_EIO, "/proc/none"},
	    {"STARPU_DISK_SWAP", "/tmp", SMALTI_EINVAL, "--scratch"},
	    {"STARPU_SCHED", "LWS", SMALTI_EINVAL, "did you mean 'lws'"},
	    {"STARPU_SCHED", "graph_test", SMALTI_EINVAL, "never starts"},
	    {"STARPU_SCHED_LIB", "/none/such.so", SMALTI_EINVAL, "/none/such.so"},
	    {"STARPU_SCHED_LIB", "libm.so.6", SMALTI_EINVAL, "starpu_get_sched_lib_policy"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		if (strcmp(cases[i].name, "STARPU_SCHED_LIB") == 0)
			setenv("STARPU_SCHED", "lws", 1);
		struct smalti_session *session = open_with(cases[i].name, cases[i].value, &error);
		unsetenv("STARPU_SCHED");
		FAILS(session ? 0 : -1, &error, cases[i].code, cases[i].name, cases[i].word);
		CHECK(strstr(error.message, cases[i].name) || cases[i].code == SMALTI_ENODEV ||
			  strcmp(cases[i].name, "STARPU_SCHED") == 0,
		      cases[i].name);
		CHECK(strlen(error.message) < SMALTI_ERROR_LENGTH / 2, "nothing is cut off");
	}
}

static void accepted(void)
{
	static const struct {
		const char *name, *value;
	} cases[] = {
	    {"HOME", NULL},       {"HOME", "/proc"},        {"HOME", "/none/such"},
	    {"HOME", "relative"}, {"TMPDIR", "/none/such"}, {"XDG_CACHE_HOME", "/proc/x"},
	    {"STARPU_SCHED", ""}, {"STARPU_NCPU", "2"},     {"STARPU_MPI_HOSTNAMES", "a"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		char *starpu_home = getenv("STARPU_HOME") ? strdup(getenv("STARPU_HOME")) : NULL;
		unsetenv("STARPU_HOME");
		struct smalti_session *session = open_with(cases[i].name, cases[i].value, &error);
		SUCCEEDS(session ? 0 : -1, &error, cases[i].name);
		close_session(session);
		if (starpu_home)
			setenv("STARPU_HOME", starpu_home, 1);
		free(starpu_home);
	}
	CHECK(access("/none", F_OK) < 0, "no home is made");
}

/* The user's limit to what StarPU allocates is the session's. */
static void memory_limit(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = open_with("STARPU_LIMIT_CPU_MEM", "200", &error);
	SUCCEEDS(session ? 0 : -1, &error, "200 MB");
	CHECK(session->memory == SMALTI_PROGRAM_BYTES + (200 << 20), "200 MB of tiles");
	close_session(session);
}

static void policy_of_ones_own(void)
{
	const char *library = getenv("SMALTI_OWN_POLICY");
	struct smalti_error error = SMALTI_NO_ERROR, unknown = SMALTI_NO_ERROR;
	CHECK(library != NULL, "SMALTI_OWN_POLICY names it");
	setenv("STARPU_SCHED_LIB", library ? library : "", 1);
	struct smalti_session *session = open_with("STARPU_SCHED", "my own", &error);
	SUCCEEDS(session ? 0 : -1, &error, "my own");
	close_session(session);
	session = open_with("STARPU_SCHED", "not mine", &unknown);
	FAILS(session ? 0 : -1, &unknown, SMALTI_EINVAL, "not mine", "not mine");
	unsetenv("STARPU_SCHED_LIB");
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	CHECK(file != NULL, path);
	if (file) {
		fputs(text, file);
		fclose(file);
	}
}

static int64_t size_of(const char *path)
{
	struct stat info;
	return stat(path, &info) < 0 ? -1 : (int64_t)info.st_size;
}

/* What a full disk has left of StarPU's files is made again. */
static void incomplete_measurements(void)
{
	static const char *const left[] = {"", "12 # half a li"};
	static const char *const names[] = {"config", "latency", "bandwidth", "affinity"};
	char directory[PATH], file[PATH + 64];
	struct smalti_error error = SMALTI_NO_ERROR;
	snprintf(directory, sizeof(directory), "%s/models", test_scratch());
	setenv("STARPU_HOSTNAME", "somewhere", 1);
	for (size_t i = 0; i < COUNT(left); i++)
		for (size_t j = 0; j <= COUNT(names); j++) {
			struct smalti_session *session =
			    open_with("STARPU_PERF_MODEL_DIR", directory, &error);
			SUCCEEDS(session ? 0 : -1, &error, "measurements");
			close_session(session);
			for (size_t k = 0; k < COUNT(names); k++) {
				snprintf(file, sizeof(file), "%s/bus/somewhere.%s", directory, names[k]);
				CHECK(size_of(file) > 0 && size_of(file) != (int64_t)strlen(left[i]), file);
			}
			if (j == COUNT(names))
				break;
			snprintf(file, sizeof(file), "%s/bus/somewhere.%s", directory, names[j]);
			write_text(file, left[i]);
			const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
			CHECK(utimensat(AT_FDCWD, file, old, 0) == 0, "an old file");
		}
	unsetenv("STARPU_HOSTNAME");
}

/* Where others may write, links do not lead what is written to the user's own files. */
static void planted_links(void)
{
	static const char text[] = "my own\n";
	static const char *const names[] = {"config", "latency", "bandwidth", "affinity"};
	char directory[PATH], mine[PATH + 64], link[PATH + 128], probe[64];
	struct smalti_error error = SMALTI_NO_ERROR;
	snprintf(directory, sizeof(directory), "%s/shared", test_scratch());
	snprintf(mine, sizeof(mine), "%s/mine", directory);
	snprintf(link, sizeof(link), "%s/bus", directory);
	CHECK(mkdir(directory, 0777) == 0 && mkdir(link, 0777) == 0, link);
	write_text(mine, text);
	snprintf(probe, sizeof(probe), ".smalti.%ld.part", (long)getpid());
	for (size_t i = 0; i <= COUNT(names); i++) {
		if (i < COUNT(names))
			snprintf(link, sizeof(link), "%s/bus/somewhere.%s", directory, names[i]);
		else
			snprintf(link, sizeof(link), "%s/bus/%s", directory, probe);
		CHECK(symlink("../mine", link) == 0, link);
	}
	setenv("STARPU_HOSTNAME", "somewhere", 1);
	struct smalti_session *session = open_with("STARPU_PERF_MODEL_DIR", directory, &error);
	unsetenv("STARPU_HOSTNAME");
	SUCCEEDS(session ? 0 : -1, &error, directory);
	close_session(session);
	char *left = smalti_file_read(mine, 1 << 20, &(size_t){0}, &error);
	CHECK(left && strcmp(left, text) == 0, "the user's file");
	free(left);
	snprintf(link, sizeof(link), "%s/bus/somewhere.config", directory);
	CHECK(size_of(link) > 0 && readlink(link, mine, sizeof(mine)) < 0,
	      "measurements in a file of their own");
}

/* Made-up trees of control groups. */
static void control_groups(void)
{
	static const struct {
		const char *what, *groups;
		struct {
			const char *path, *text;
		} files[4];
		int64_t memory;
		double cpus;
	} cases[] = {
	    {"none", "0::/a/b\n", {{NULL, NULL}}, 0, 0},
	    {"version 2",
	     "0::/a/b\n",
	     {{"a/b/memory.max", "1000\n"}, {"a/b/cpu.max", "150000 100000\n"}},
	     1000,
	     1.5},
	    {"no limit", "0::/a\n", {{"a/memory.max", "max\n"}, {"a/cpu.max", "max 100000\n"}}, 0, 0},
	    {"of a parent", "0::/a/b\n", {{"a/memory.max", "500\n"}, {"a/b/memory.max", "1000\n"}}, 500, 0},
	    {"high", "0::/a\n", {{"a/memory.high", "700\n"}, {"a/memory.max", "1000\n"}}, 700, 0},
	    {"in a container", "0::/../x\n", {{"memory.max", "600\n"}}, 600, 0},
	    {"version 1",
	     "5:memory:/d/e\n3:cpu,cpuacct:/d\n1:name=systemd:/x\n",
	     {{"memory/d/e/memory.limit_in_bytes", "2000\n"},
	      {"cpu,cpuacct/d/cpu.cfs_quota_us", "50000\n"},
	      {"cpu,cpuacct/d/cpu.cfs_period_us", "100000\n"}},
	     2000,
	     0.5},
	    {"version 1, no limit",
	     "5:memory:/\n4:cpu:/\n",
	     {{"memory/memory.limit_in_bytes", "9223372036854771712\n"},
	      {"cpu/cpu.cfs_quota_us", "-1\n"},
	      {"cpu/cpu.cfs_period_us", "100000\n"}},
	     0,
	     0},
	    {"both",
	     "5:memory:/d\n0::/u\n",
	     {{"memory/d/memory.limit_in_bytes", "300\n"}, {"unified/u/memory.max", "900\n"}},
	     300,
	     0},
	    {"nonsense",
	     "5:memory\nx\n::\n0::/a\n",
	     {{"a/memory.max", "abc\n"}, {"a/cpu.max", "-1 0\n"}},
	     0,
	     0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char root[PATH], path[2 * PATH], command[3 * PATH];
		snprintf(root, sizeof(root), "%s", test_scratch());
		snprintf(command, sizeof(command), "mkdir -p %s/proc/self", root);
		CHECK(system(command) == 0, command);
		snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
		write_text(path, cases[i].groups);
		for (int j = 0; j < 4 && cases[i].files[j].path; j++) {
			snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s", root, cases[i].files[j].path);
			snprintf(command, sizeof(command), "mkdir -p \"$(dirname %s)\"", path);
			CHECK(system(command) == 0, command);
			write_text(path, cases[i].files[j].text);
		}
		const struct smalti_cgroup found = smalti_cgroup_read(root);
		CHECK(found.memory == cases[i].memory && found.cpus == cases[i].cpus, cases[i].what);
	}
}

static void machine(void)
{
	const struct smalti_machine_cpus cpus = smalti_machine_cpus();
	CHECK(cpus.threads >= cpus.cores && cpus.cores >= cpus.allowed_cores && cpus.allowed_cores > 0,
	      "cores");
	CHECK(smalti_machine_quota(&cpus) < cpus.allowed_cores, "workers for a quota");
	const int64_t all = smalti_machine_memory();
	CHECK(all > 0 && all <= (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE), "memory");
}

/* Its threads are not in a child, which would wait for them for ever. */
static void fork_while_open(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = open_with("STARPU_NCPU", "1", &error);
	SUCCEEDS(session ? 0 : -1, &error, "open");
	const pid_t child = fork();
	if (child == 0) {
		struct smalti_error first = SMALTI_NO_ERROR, second = SMALTI_NO_ERROR;
		alarm(20);
		const bool refuses = !smalti_task_group_new(session, "child", 0, &first) &&
				     first.code == SMALTI_EINVAL && strstr(first.message, "fork") &&
				     smalti_session_close(session, &second) < 0 &&
				     second.code == SMALTI_EINVAL;
		_exit(refuses ? 0 : 1);
	}
	int status = -1;
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		  WEXITSTATUS(status) == 0,
	      "a child");
	close_session(session);
}

static const struct test tests[] = {
    {"refused", refused},
    {"accepted", accepted},
    {"memory limit", memory_limit},
    {"policy of one's own", policy_of_ones_own},
    {"incomplete measurements", incomplete_measurements},
    {"planted links", planted_links},
    {"control groups", control_groups},
    {"machine", machine},
    {"fork while open", fork_while_open},
};

TEST_MAIN("environment", tests)
