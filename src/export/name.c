/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "export/export.h"

#include <sys/stat.h>

enum { PART = 255 }; /* of a path: NAME_MAX */

/* Takes every `from` out of the text and puts `to` in, which is not longer. */
static void replace(char *text, const char *from, const char *to)
{
	const size_t taken = strlen(from), put = strlen(to);
	for (char *at = text; (at = strstr(at, from)); at += put) {
		for (size_t i = 0; i < put; i++)
			at[i] = to[i];
		memmove(at + put, at + taken, strlen(at + taken) + 1);
	}
}

/* Takes away the parts that the system does not look at, "." and empty ones. */
static int shorten(char *path, struct smalti_error *error)
{
	char *to = path, *part = path, *next;
	do {
		next = strchr(part, '/');
		if (next)
			*next++ = '\0';
		const size_t length = strlen(part);
		if (length == 0 || strcmp(part, ".") == 0)
			continue;
		if (strcmp(part, "..") == 0)
			return smalti_fail(error, SMALTI_EINVAL,
					   "its features would lie outside of the directory");
		if (length > PART)
			return smalti_fail(error, SMALTI_EINVAL, "a part of its name is longer than %d bytes",
					   PART);
		if (to > path)
			*to++ = '/';
		memmove(to, part, length);
		to += length;
	} while ((part = next));
	*to = '\0';
	return to > path ? 0 : smalti_fail(error, SMALTI_EINVAL, "its key makes no file name");
}

char *smalti_loader_name(const char *key, const char *extension, struct smalti_error *error)
{
	static const char *const images[] = {".png", ".jpg", ".webp", ".jpeg", ".JPEG", ".JPG"};
	char *name = smalti_format(error, "%s", key);
	if (!name)
		return NULL;
	char *slash = strrchr(name, '/');
	if (slash)
		*slash = '_';
	const bool absolute = name[0] == '/';
	for (size_t i = 0; i < COUNT_OF(images); i++)
		replace(name, images[i], extension);
	if (absolute)
		smalti_fail(error, SMALTI_EINVAL, "its features would lie outside of the directory");
	else if (shorten(name, error) == 0)
		return name;
	free(name);
	return NULL;
}

char *smalti_loader_directory(const char *caption, struct smalti_error *error)
{
	char *name = smalti_format(error, "%s_caption_features_new", caption);
	if (!name)
		return NULL;
	replace(name, "prompt_", "");
	if (!strchr(caption, '/') && strlen(name) <= PART)
		return name;
	smalti_fail(error, SMALTI_EINVAL, "caption '%s': makes no directory's name", caption);
	free(name);
	return NULL;
}

static int make_directory(const char *path, struct smalti_error *error)
{
	struct stat info;
	if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: is a file, but has to be a directory for other items", path);
	return smalti_make_directory(path, error);
}

int smalti_make_parents(const char *directory, const char *name, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	int status = path ? 0 : -1;
	for (char *slash = path ? path + strlen(directory) : NULL; slash && !status;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		status = make_directory(path, error);
		*slash = '/';
	}
	return status;
}
