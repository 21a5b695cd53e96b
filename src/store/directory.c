/* SPDX-License-Identifier: Apache-2.0 */
#include "store/directory.h"
#include "base/file.h"

static const struct smalti_identity_format format = {
    .format = "smalti features", .version = 2, .older = "extract the features again, into another directory"};

/* Tells whether a name may be there before extract.json, since it is made before. */
static bool comes_first(const char *name)
{
	static const char *const names[] = {"claims", "runs", "extract.json"};
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return name[0] == '.';
}

/* Finds a name that a directory of features would not have from the beginning; '\0' first: there is none. */
static int find_foreign(const char *directory, char name[256], struct smalti_error *error)
{
	name[0] = '\0';
	SCOPED(closedir) DIR *entries = opendir(directory);
	if (!entries)
		return errno == ENOENT || errno == ENOTDIR
			   ? 0
			   : smalti_fail_errno(error, "%s: cannot be read", directory);
	for (const struct dirent *entry; !name[0] && (entry = readdir(entries));)
		if (!comes_first(entry->d_name))
			snprintf(name, 256, "%s", entry->d_name);
	return 0;
}

int smalti_directory_look(const char *directory, struct smalti_error *error)
{
	char foreign[256];
	if (find_foreign(directory, foreign, error))
		return -1;
	const int status = smalti_find_in(directory, "extract.json", error);
	if (status == 0 && foreign[0])
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "%s: holds %s but no extract.json, so it is no directory of features: name a "
		    "new or empty one",
		    directory, foreign);
	return status;
}

static int make_inside(const char *directory, const char *name, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	return path ? smalti_make_directory(path, error) : -1;
}

int smalti_directory_describe(const char *directory, const cJSON *identity, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/extract.json", directory);
	return path ? smalti_identity_write(path, &format, identity, error) : -1;
}

int smalti_directory_prepare(const char *directory, struct smalti_error *error)
{
	return make_inside(directory, "claims", error) || make_inside(directory, "runs", error) ? -1 : 0;
}

cJSON *smalti_directory_identity(const char *directory, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/extract.json", directory);
	return path ? smalti_identity_read(path, &format, error) : NULL;
}
