/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"
#include "base/file.h"

#include <signal.h>
#include <sys/stat.h>
#include <xxhash.h>

/* Returns the state of a process ('\0': it cannot be read) and when it began. */
static char look_at(int64_t pid, int64_t *start)
{
	enum { START = 19 }; /* fields between the state and the start */
	char path[64], text[1024];
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	smalti_read_line(path, text, sizeof(text));
	*start = 0;
	char *at = strrchr(text, ')'); /* after the command's name, which may hold any character */
	if (!at || at[1] != ' ' || !at[2])
		return '\0';
	const char state = at[2];
	for (int field = 0; at && field <= START; field++)
		at = strchr(at + 1, ' ');
	if (at)
		*start = strtoll(at, NULL, 10);
	return state;
}

void smalti_process_name(const struct smalti_process *process, char name[SMALTI_HOLDER])
{
	snprintf(name, SMALTI_HOLDER, "%s, process %" PRId64, process->host, process->pid);
}

void smalti_process_self(struct smalti_process *self)
{
	*self = (struct smalti_process){.pid = getpid()};
	if (gethostname(self->host, sizeof(self->host) - 1))
		snprintf(self->host, sizeof(self->host), "unknown");
	char boot[64];
	smalti_read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	struct stat space;
	if (boot[0] && stat("/proc/self/ns/pid", &space) == 0)
		snprintf(self->machine, sizeof(self->machine), "%s %" PRIuMAX, boot, (uintmax_t)space.st_ino);
	look_at(self->pid, &self->start);
}

bool smalti_process_is_gone(const struct smalti_process *process, const struct smalti_process *self)
{
	if (!self->machine[0] || strcmp(process->machine, self->machine) != 0)
		return false;
	int64_t start;
	const char state = look_at(process->pid, &start);
	if (!state) /* /proc may hide other users' processes */
		return kill((pid_t)process->pid, 0) && errno == ESRCH;
	return state == 'Z' || state == 'X' || (process->start && start && start != process->start);
}

static uint64_t digest_machine(const struct smalti_process *process)
{
	return XXH3_64bits(process->machine, strlen(process->machine));
}

void smalti_process_tag(const struct smalti_process *process, char tag[SMALTI_PROCESS_TAG])
{
	snprintf(tag, SMALTI_PROCESS_TAG, "%016" PRIx64 "-%08" PRIx64 "-%016" PRIx64, digest_machine(process),
		 (uint64_t)process->pid, (uint64_t)process->start);
}

const char *smalti_process_read_tag(const char *text, const struct smalti_process *self, bool *here,
				    bool *gone)
{
	static const int digits[] = {16, 8, 16};
	uint64_t values[3];
	for (int i = 0; i < 3; i++) {
		if ((i > 0 && *text++ != '-') || (int)strspn(text, "0123456789abcdef") != digits[i])
			return NULL;
		values[i] = strtoull(text, NULL, 16);
		text += digits[i];
	}
	struct smalti_process process = *self;
	process.pid = (int64_t)values[1];
	process.start = (int64_t)values[2];
	*here = self->machine[0] && values[0] == digest_machine(self);
	*gone = *here && process.pid > 0 && smalti_process_is_gone(&process, self);
	return text;
}

int smalti_process_print(const struct smalti_process *process, cJSON *object, struct smalti_error *error)
{
	if (cJSON_AddStringToObject(object, "host", process->host) &&
	    cJSON_AddStringToObject(object, "machine", process->machine) &&
	    cJSON_AddNumberToObject(object, "pid", (double)process->pid) &&
	    cJSON_AddNumberToObject(object, "start", (double)process->start))
		return 0;
	return smalti_fail(error, SMALTI_ENOMEM, "no memory for a claim");
}

int smalti_process_read(struct smalti_process *process, const cJSON *object, struct smalti_error *error)
{
	const char *host, *machine;
	if (smalti_json_string(object, "host", SMALTI_JSON_REQUIRED, &host, error) ||
	    smalti_json_string(object, "machine", SMALTI_JSON_REQUIRED, &machine, error) ||
	    smalti_json_int(object, "pid", SMALTI_JSON_REQUIRED, 1, INT32_MAX, &process->pid, error) ||
	    smalti_json_int(object, "start", SMALTI_JSON_REQUIRED, 0, INT64_MAX, &process->start, error))
		return -1;
	snprintf(process->host, sizeof(process->host), "%s", host);
	snprintf(process->machine, sizeof(process->machine), "%s", machine);
	return 0;
}

int64_t smalti_process_resident(void)
{
	char line[256]; /* pages: all, resident, ... */
	const char *second =
	    smalti_read_line("/proc/self/statm", line, sizeof(line)) ? strchr(line, ' ') : NULL;
	const int64_t pages = second ? strtoll(second, NULL, 10) : 0;
	return pages * (int64_t)sysconf(_SC_PAGESIZE);
}
