/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

/* Files of unknown processes elsewhere are abandoned when they were not written to for so long. */
enum { FORGOTTEN = 24 * 60 * 60 /* seconds */ };

/* Finds where the tag of the process begins in `.NAME.TAG-COUNTER.part`; NULL if it is not such a name. */
static const char *find_tag(const char *name)
{
	const int64_t stem = smalti_stem(name, ".part");
	if (name[0] != '.' || stem <= 0)
		return NULL;
	const char *at = name + stem;
	while (at > name && at[-1] != '.')
		at--;
	return at;
}

static bool is_forgotten(int directory, const char *name)
{
	struct stat info;
	return fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
	       time(NULL) - info.st_mtim.tv_sec > FORGOTTEN;
}

static bool is_abandoned(int directory, const char *name, const struct smalti_process *self)
{
	bool here, gone;
	const char *tag = find_tag(name);
	const char *rest = tag ? smalti_process_read_tag(tag, self, &here, &gone) : NULL;
	if (!rest || rest[0] != '-' || strcmp(rest + 1 + strspn(rest + 1, "0123456789"), ".part") != 0)
		return false;
	return gone || (!here && is_forgotten(directory, name));
}

static void clean(const char *path, bool deep, const struct smalti_process *self);

/* Cleans the directory inside, but follows no links to directories. */
static void clean_inner(const char *path, const char *name, const struct smalti_process *self)
{
	SCOPED(free) char *inner = smalti_format(NULL, "%s/%s", path, name);
	if (inner && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		clean(inner, true, self);
}

static void clean(const char *path, bool deep, const struct smalti_process *self)
{
	const int file = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (deep ? O_NOFOLLOW : 0)) : -1;
	SCOPED(closedir) DIR *directory = file < 0 ? NULL : fdopendir(file);
	if (!directory && file >= 0)
		close(file);
	for (const struct dirent *entry; directory && (entry = readdir(directory));) {
		if (is_abandoned(file, entry->d_name, self))
			unlinkat(file, entry->d_name, 0);
		else if (deep && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
			clean_inner(path, entry->d_name, self);
	}
}

void smalti_writer_clean(const char *path, bool deep)
{
	struct smalti_process self;
	smalti_process_self(&self);
	clean(path, deep, &self);
}
