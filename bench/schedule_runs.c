/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/schedule_runs.h"
#include "base/file.h"
#include "base/shipped.h"
#include "cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/wait.h>

extern char **environ;

/* Returns the n-th part of a list; NULL after the last. */
static const char *part(const char *list, int64_t index, size_t *length)
{
	for (; list; list = *list ? list + 1 : NULL) {
		*length = strcspn(list, ",");
		if (index-- == 0)
			return list;
		list += *length;
	}
	return NULL;
}

static int64_t parts(const char *list)
{
	size_t length;
	int64_t count = 0;
	while (part(list, count, &length))
		count++;
	return count ? count : 1;
}

int64_t smalti_sweep_cases(const struct smalti_sweep *sweep)
{
	int64_t cases = 1;
	for (int axis = 0; axis < sweep->count; axis++)
		cases *= parts(sweep->axes[axis].list);
	return cases;
}

/* Numbers cases so that the last axis changes first. */
bool smalti_sweep_value(const struct smalti_sweep *sweep, int64_t index, int axis, char value[static 64])
{
	size_t length;
	for (int later = sweep->count - 1; later > axis; later--)
		index /= parts(sweep->axes[later].list);
	const char *list = sweep->axes[axis].list, *found = part(list, index % parts(list), &length);
	if (found)
		snprintf(value, 64, "%.*s", (int)length, found);
	return found != NULL;
}

void smalti_sweep_name(const struct smalti_sweep *sweep, int64_t index, char name[static 256])
{
	char value[64];
	*name = '\0';
	for (int axis = 0; axis < sweep->count; axis++)
		if (smalti_sweep_value(sweep, index, axis, value))
			smalti_append(name, 256, ", ", "%s %s", sweep->axes[axis].option, value);
}

int smalti_call_begin(struct smalti_call *call, struct smalti_error *error)
{
	static const char *const near[] = {"smalti", "../smalti"}; /* libtool runs programs from .libs */
	const char *named = getenv("SMALTI");
	char path[PATH_MAX];
	*call = (struct smalti_call){.count = 0};
	if (!named && !smalti_find_beside(near, COUNT_OF(near), path))
		return smalti_fail(error, SMALTI_EIO,
				   "the program smalti is not beside smalti-bench: set SMALTI to its path");
	smalti_call_add(call, "%s", named ? named : path);
	return 0;
}

void smalti_call_add(struct smalti_call *call, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	if (call->count + 1 == (int)COUNT_OF(call->items) ||
	    vasprintf(&call->items[call->count], format, values) < 0)
		call->failed = true;
	else
		call->count++;
	va_end(values);
}

/* Fails with the last line of a file. */
static int fail_by(const char *said, const char *program, struct smalti_error *error)
{
	size_t length;
	SCOPED(free) char *text = smalti_file_read(said, 1 << 20, &length, NULL);
	while (text && length && text[length - 1] == '\n')
		text[--length] = '\0';
	const char *line = text ? strrchr(text, '\n') : NULL;
	return smalti_fail(error, SMALTI_EIO, "%s failed: %.300s", program,
			   line ? line + 1 : (text && *text ? text : "it says nothing"));
}

int smalti_call_run(const struct smalti_call *call, const char *said, struct smalti_error *error)
{
	if (call->failed)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a command line");
	posix_spawn_file_actions_t actions;
	pid_t child;
	int status;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	const int failed = posix_spawn(&child, call->items[0], &actions, NULL, call->items, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failed)
		return smalti_fail(error, SMALTI_EIO, "%s cannot be run: %s", call->items[0],
				   strerror(failed));
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		if (smalti_signals_caught())
			kill(child, SIGTERM);
	if (smalti_signals_caught())
		return smalti_fail(error, SMALTI_ECANCELLED, "stopped by %s", smalti_signals_caught());
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : fail_by(said, call->items[0], error);
}

void smalti_call_free(struct smalti_call *call)
{
	for (int i = 0; i < call->count; i++)
		free(call->items[i]);
	call->count = 0;
}
