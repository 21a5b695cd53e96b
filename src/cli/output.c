/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"
#include "base/file.h"

#include <sys/stat.h>
#include <xxhash.h>

bool smalti_names_directory(const char *path)
{
	return path[strlen(path) - 1] == '/' || smalti_is_directory(path);
}

int smalti_check_stdout(const char *path, bool taken, const char *options, struct smalti_error *error)
{
	if (!path || strcmp(path, "-") != 0)
		return 0;
	if (taken)
		return smalti_fail(error, SMALTI_EINVAL, "-o -: cannot be combined with %s", options);
	if (isatty(STDOUT_FILENO))
		return smalti_fail(error, SMALTI_EINVAL,
				   "-o -: the standard output is a terminal; redirect it, or name a file");
	return 0;
}

int smalti_format_of(const char *path, bool chosen, int choice, const char *const *suffixes,
		     struct smalti_error *error)
{
	char names[64] = "";
	if (chosen)
		return choice;
	if (strcmp(path, "-") == 0 || smalti_names_directory(path))
		return 0;
	for (int i = 0; suffixes[i]; i++) {
		if (smalti_stem(path, suffixes[i]) > 0)
			return i;
		smalti_append(names, sizeof(names), " or ", "%s", suffixes[i]);
	}
	return smalti_fail(error, SMALTI_EINVAL, "-o %s: expected a name that ends in %s%s", path, names,
			   suffixes[1] ? ", or --format" : "");
}

static int check_directory(const char *directory, struct smalti_error *error)
{
	if (access(directory, W_OK | X_OK) == 0)
		return 0;
	return smalti_fail_errno(error, "%s: files cannot be made there", directory);
}

static int open_directory(struct smalti_output *output, const char *path, struct smalti_error *error)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	output->directory = smalti_format(error, "%.*s", (int)length, path);
	if (!output->directory || smalti_make_directory(output->directory, error) < 0)
		return -1;
	return check_directory(output->directory, error);
}

/* Checks before the work, not after it. */
static int check_file(const char *path, struct smalti_error *error)
{
	struct stat info;
	if (strcmp(path, "-") == 0)
		return 0;
	if (stat(path, &info))
		return errno == ENOENT ? 0 : smalti_fail_errno(error, "%s: cannot be made", path);
	if (S_ISREG(info.st_mode))
		return 0;
	return smalti_fail(error, SMALTI_EIO, "%s: expected a file, found %s", path,
			   S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket");
}

static int open_file(struct smalti_output *output, const char *path, struct smalti_error *error)
{
	output->file = path;
	if (strcmp(path, "-") == 0)
		return 0;
	output->directory = smalti_directory_of(path, error);
	return output->directory && check_directory(output->directory, error) == 0 ? check_file(path, error)
										   : -1;
}

int smalti_output_open(struct smalti_output *output, const char *path, const char *suffix, int64_t images,
		       struct smalti_error *error)
{
	*output = (struct smalti_output){.suffix = suffix};
	if (path && smalti_names_directory(path))
		return open_directory(output, path, error);
	if (images == 1)
		return open_file(output, path ? path : "image.png", error);
	if (!path)
		return smalti_fail(error, SMALTI_EINVAL, "several images need a directory: -o DIRECTORY/");
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "-o %s: is the name of one image; for several name a directory and end it with '/'", path);
}

void smalti_output_close(struct smalti_output *output)
{
	smalti_set_free(&output->ids);
	smalti_set_free(&output->names);
	free(output->directory);
}

static uint64_t hash_of(const char *text)
{
	return XXH3_64bits(text, strlen(text));
}

/* Returns ID, or ID-K for one of several images. Another request's ID gives this name only if it ends in
 * -K. */
static char *stem(const char *id, int64_t image, int64_t images, struct smalti_error *error)
{
	return images == 1 ? smalti_format(error, "%s", id) : smalti_format(error, "%s-%" PRId64, id, image);
}

int smalti_output_claim(struct smalti_output *output, const char *id, int64_t images,
			struct smalti_error *error)
{
	int added = smalti_set_add(&output->ids, hash_of(id), error);
	if (added == 0)
		return smalti_fail(error, SMALTI_EINVAL, "the id \"%s\" was used before", id);
	for (int64_t image = 0; image < images && added > 0; image++) {
		SCOPED(free) char *name = stem(id, image, images, error);
		added = name ? smalti_set_add(&output->names, hash_of(name), error) : -1;
		if (added == 0)
			smalti_fail(error, SMALTI_EINVAL, "\"%s%s\" is another prompt's image already", name,
				    output->suffix);
	}
	return added > 0 ? 0 : -1;
}

bool smalti_output_has(const struct smalti_output *output, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const int64_t stem = smalti_stem(name, output->suffix);
	struct stat here, there;
	if (!output->directory || stem <= 0 ||
	    !smalti_set_has(&output->names, XXH3_64bits(name, (size_t)stem)))
		return false;
	SCOPED(free) char *directory = smalti_directory_of(path, NULL);
	return directory && stat(directory, &there) == 0 && stat(output->directory, &here) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Returns the path if a file may be made there. */
static char *checked(char *path, struct smalti_error *error)
{
	if (!path || check_file(path, error) == 0)
		return path;
	free(path);
	return NULL;
}

char *smalti_output_image(const struct smalti_output *output, const char *id, int64_t image, int64_t images,
			  struct smalti_error *error)
{
	if (output->file)
		return checked(smalti_format(error, "%s", output->file), error);
	SCOPED(free) char *name = stem(id, image, images, error);
	return name ? checked(smalti_format(error, "%s/%s%s", output->directory, name, output->suffix), error)
		    : NULL;
}

char *smalti_output_latents(const char *image, struct smalti_error *error)
{
	const int64_t stem = smalti_stem(image, ".png");
	return checked(smalti_format(error, "%.*s.safetensors", stem > 0 ? (int)stem : -1, image), error);
}
