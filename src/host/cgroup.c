/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cgroup.h"
#include "base/file.h"
#include "base/parse.h"

enum { PATH = 4096, LINE = 4096 };

/* Version 1 says "no limit" by a number near 2^63. */
static const int64_t unlimited = INT64_MAX / 2;

static bool read_line(const char *directory, const char *name, char *line, int size)
{
	char path[PATH];
	return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) &&
	       smalti_read_line(path, line, size);
}

static void min_memory(struct smalti_cgroup *limits, const char *directory, const char *name)
{
	char line[64];
	int64_t bytes;
	struct smalti_error none = SMALTI_NO_ERROR; /* "max" is no number, and no limit */
	if (!read_line(directory, name, line, sizeof(line)) ||
	    smalti_parse_int64(line, 1, unlimited, &bytes, &none) < 0)
		return;
	if (bytes < unlimited && (!limits->memory || bytes < limits->memory))
		limits->memory = bytes;
}

static void min_cpus(struct smalti_cgroup *limits, const char *quota, const char *period)
{
	struct smalti_error none = SMALTI_NO_ERROR;
	double time, of;
	if (smalti_parse_double(quota, 1, 1e18, &time, &none) < 0 ||
	    smalti_parse_double(period, 1, 1e18, &of, &none) < 0)
		return;
	if (limits->cpus <= 0 || time / of < limits->cpus)
		limits->cpus = time / of;
}

static void limits_of_directory(struct smalti_cgroup *limits, const char *directory)
{
	char quota[64], period[64], *blank;
	min_memory(limits, directory, "memory.max");
	min_memory(limits, directory, "memory.high");
	min_memory(limits, directory, "memory.limit_in_bytes");
	if (read_line(directory, "cpu.max", quota, sizeof(quota)) && (blank = strchr(quota, ' '))) {
		*blank = '\0';
		min_cpus(limits, quota, blank + 1);
	}
	if (read_line(directory, "cpu.cfs_quota_us", quota, sizeof(quota)) &&
	    read_line(directory, "cpu.cfs_period_us", period, sizeof(period)))
		min_cpus(limits, quota, period);
}

/* Adds the limits of a group and of its parents. In a container the path may be the machine's: only the group
 * itself is visible then, as the mounted directory. */
static void limits_of_group(struct smalti_cgroup *limits, const char *root, const char *mount,
			    const char *group)
{
	char directory[PATH];
	const int base = snprintf(directory, sizeof(directory), "%s/sys/fs/cgroup/%s", root, mount);
	if (base >= (int)sizeof(directory) || snprintf(directory + base, sizeof(directory) - (size_t)base,
						       "%s", group) >= (int)sizeof(directory) - base)
		return;
	for (char *end = directory + strlen(directory); end && end >= directory + base;
	     end = strrchr(directory + base, '/')) {
		*end = '\0';
		limits_of_directory(limits, directory);
	}
	directory[base] = '\0';
	limits_of_directory(limits, directory);
}

struct smalti_cgroup smalti_cgroup_read(const char *root)
{
	/* The controllers between the colons of /proc/self/cgroup, and where they are mounted. */
	static const struct {
		const char *controllers, *mount;
	} hierarchies[] = {
	    {"", ""}, {"", "unified"}, {"memory", "memory"}, {"cpu,cpuacct", "cpu,cpuacct"}, {"cpu", "cpu"}};
	struct smalti_cgroup limits = {0, 0};
	char path[PATH], line[LINE];
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	SCOPED(fclose) FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(++controllers, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		for (size_t i = 0; i < COUNT_OF(hierarchies); i++)
			if (strcmp(controllers, hierarchies[i].controllers) == 0)
				limits_of_group(&limits, root, hierarchies[i].mount, group);
	}
	return limits;
}
