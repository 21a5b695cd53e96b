/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The process in `.NAME.PID-COUNTER.part`, 0 if it is not such a name. */
static pid_t writer_of(const char *name)
{
	const char *const suffix = ".part";
	const size_t length = strlen(name), end = strlen(suffix);
	if (name[0] != '.' || length <= end || strcmp(name + length - end, suffix) != 0)
		return 0;
	const char *at = name + length - end;
	while (at > name && at[-1] != '.')
		at--;
	if (!isdigit((unsigned char)*at))
		return 0;
	char *rest;
	const long pid = strtol(at, &rest, 10);
	if (*rest++ != '-' || rest + strspn(rest, "0123456789") != name + length - end)
		return 0;
	return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* Folders in it, but no links to folders. */
static void clean_inner(const char *path, const char *name)
{
	char *inner = smalti_format(NULL, "%s/%s", path, name);
	if (inner && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		smalti_writer_clean(inner, true);
	free(inner);
}

void smalti_writer_clean(const char *path, bool deep)
{
	const int file = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (deep ? O_NOFOLLOW : 0)) : -1;
	DIR *folder = file < 0 ? NULL : fdopendir(file);
	if (!folder && file >= 0)
		close(file);
	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		const pid_t pid = writer_of(entry->d_name);
		/* this process has written nothing yet: in a container its number may be the dead one's */
		if (pid && (pid == getpid() || (kill(pid, 0) && errno == ESRCH)))
			unlinkat(file, entry->d_name, 0);
		else if (deep && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
			clean_inner(path, entry->d_name);
	}
	if (folder)
		closedir(folder);
}
