/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/pipeline_directory.h"
#include "base/file.h"

#include <ctype.h>
#include <sys/stat.h>

/* OWNER/NAME */
static bool is_hub_name(const char *text)
{
	int slashes = 0;
	if (!isalnum((unsigned char)text[0]))
		return false;
	for (const char *at = text; *at; at++) {
		slashes += *at == '/';
		if (!isalnum((unsigned char)*at) && !strchr("/._-", *at))
			return false;
	}
	return slashes == 1 && text[strlen(text) - 1] != '/';
}

static int fail_missing(const char *directory, struct smalti_error *error)
{
	if (is_hub_name(directory))
		return smalti_fail(
		    error, SMALTI_EIO,
		    "%s: no such directory; to have a model of that name from Hugging Face: hf "
		    "download %s --local-dir DIR, then give DIR",
		    directory, directory);
	return smalti_fail(error, SMALTI_EIO,
			   "%s: no such directory; a model's directory in diffusers' layout was expected",
			   directory);
}

int smalti_pipeline_directory_check(const char *directory, struct smalti_error *error)
{
	struct stat info;
	if (stat(directory, &info))
		return fail_missing(directory, error);
	if (S_ISDIR(info.st_mode))
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "%s: is a single file, a pipeline's directory in diffusers' layout was expected; "
			   "convert it with diffusers, or download the model in that layout",
			   directory);
}

int smalti_pipeline_check(const char *directory, struct smalti_error *error)
{
	if (smalti_pipeline_directory_check(directory, error))
		return -1;
	const int found = smalti_find_in(directory, "model_index.json", error);
	if (found)
		return found < 0 ? -1 : 0;
	if (smalti_find_in(directory, "../model_index.json", NULL) > 0)
		return smalti_fail(error, SMALTI_EIO,
				   "%s: is one component of a pipeline; give the directory that it lies in",
				   directory);
	return smalti_fail(
	    error, SMALTI_EIO,
	    "%s: has no model_index.json; a pipeline's directory in diffusers' layout was expected",
	    directory);
}

int smalti_pointer_check(const void *bytes, size_t length, struct smalti_error *error)
{
	static const char beginning[] = "version https://git-lfs";
	if (length < sizeof(beginning) - 1 || memcmp(bytes, beginning, sizeof(beginning) - 1) != 0)
		return 0;
	return smalti_fail(
	    error, SMALTI_EFORMAT,
	    "is a pointer of Git LFS, not the file: run \"git lfs pull\" in the model's directory");
}
