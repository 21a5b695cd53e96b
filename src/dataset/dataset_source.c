/* SPDX-License-Identifier: Apache-2.0 */

#include "base/file.h"
#include "base/set.h"
#include "dataset/dataset_format.h"

#include <sys/stat.h>
#include <xxhash.h>

enum { TARS_MAX = 1 << 20 };

/* Adds a tar, whose path is the source's from here on. */
static int add_tar(void *user, char *path, struct smalti_error *error)
{
	struct smalti_dataset_source *s = user;
	if (smalti_grow(&s->tars, s->tar_count, sizeof(*s->tars), error) < 0) {
		free(path);
		return -1;
	}
	s->tars[s->tar_count++] = (struct smalti_dataset_tar_file){.path = path};
	return 0;
}

static void forget_tars(struct smalti_dataset_source *s)
{
	for (int64_t i = 0; i < s->tar_count; i++) {
		free(s->tars[i].path);
		free(s->tars[i].prefix);
	}
	free(s->tars);
	s->tars = NULL;
	s->tar_count = 0;
}

static int64_t count_tars(const struct smalti_dataset_source *s, const char *prefix, int64_t *first)
{
	int64_t count = 0;
	for (int64_t i = s->tar_count; i-- > 0;)
		if (s->tars[i].prefix && strcmp(s->tars[i].prefix, prefix) == 0) {
			*first = i;
			count++;
		}
	return count;
}

/* Lets keys begin with the tar's name without its directory (`below` bytes of the path), since tars are
 * moved; two of one name cannot be told apart. */
static int name_tar(struct smalti_dataset_source *s, struct smalti_dataset_tar_file *tar, size_t below,
		    struct smalti_set *names, struct smalti_error *error)
{
	const char *name = tar->path + below;
	const size_t length = smalti_dataset_stem(name, smalti_dataset_tar_endings);
	tar->prefix = smalti_format(error, "%.*s", (int)length, name);
	if (!tar->prefix)
		return -1;
	const int added = smalti_set_add(names, XXH3_64bits(tar->prefix, length), error);
	int64_t first = 0;
	if (added == 0 && count_tars(s, tar->prefix, &first) > 1)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s and %s: have the same name, which the keys of their items begin with; "
				   "rename one, or name the directory that they are in",
				   s->tars[first].path, tar->path);
	return added < 0 ? -1 : 0;
}

int smalti_dataset_refuse_mixture(const char *path, enum smalti_code code, struct smalti_error *error)
{
	return smalti_fail(error, code,
			   "%s: of several data sets each has to be a tar, this is none: give lists and "
			   "directories alone",
			   path);
}

/* Tells whether gzip compressed it. */
static bool is_packed(int file)
{
	char start[2];
	const ssize_t length = pread(file, start, sizeof(start), 0);
	return length > 0 && smalti_is_gzip(start, (size_t)length);
}

static int spool(struct smalti_dataset_source *s, int from, const char *name, struct smalti_error *error)
{
	return smalti_spool_add(&s->spool, from, name, s->options->on_progress, s->options->user, error);
}

static int spool_tar(struct smalti_dataset_source *s, struct smalti_dataset_tar_file *tar, int file,
		     struct smalti_error *error)
{
	if (spool(s, file, tar->path, error) < 0)
		return -1;
	tar->spooled = true;
	tar->first = s->spool.first;
	tar->bytes = s->spool.bytes - s->spool.first;
	return 0;
}

static int measure_tar(struct smalti_dataset_source *s, struct smalti_dataset_tar_file *tar,
		       struct smalti_error *error)
{
	struct stat info;
	if (stat(tar->path, &info) < 0)
		return smalti_fail_errno(error, "%s: cannot be opened", tar->path);
	if (!S_ISREG(info.st_mode))
		return smalti_dataset_refuse_mixture(tar->path, SMALTI_EINVAL, error);
	SCOPED(close) const int file = smalti_open_regular(tar->path, &tar->bytes, error);
	if (file < 0)
		return -1;
	const int status = is_packed(file) ? spool_tar(s, tar, file, error) : 0;
	tar->start = s->size;
	s->size += tar->bytes;
	return status;
}

/* Lets keys begin with their tars' paths below `directory`, else with their last names. */
static int settle_tars(struct smalti_dataset_source *s, const char *directory, struct smalti_error *error)
{
	struct smalti_set names = {0};
	int status = 0;
	s->size = 0;
	for (int64_t i = 0; i < s->tar_count && status == 0; i++) {
		struct smalti_dataset_tar_file *tar = &s->tars[i];
		const char *slash = strrchr(tar->path, '/');
		const size_t below = directory ? strlen(directory) + 1
				     : slash   ? (size_t)(slash - tar->path) + 1
					       : 0;
		status = measure_tar(s, tar, error) || name_tar(s, tar, below, &names, error) ? -1 : 0;
	}
	smalti_set_free(&names);
	return status;
}

/* Adds the first `count` tars in the directory's list. */
static int list_tars(struct smalti_dataset_source *s, int64_t count, struct smalti_error *error)
{
	SCOPED(free) char *line = NULL;
	size_t capacity = 0;
	rewind(s->list);
	while (s->tar_count < count && getdelim(&line, &capacity, '\0', s->list) > 0) {
		if (line[0] != SMALTI_WALK_TAR)
			continue;
		char *path = smalti_format(error, "%s/%s", s->path, line + 1);
		if (!path || add_tar(s, path, error) < 0)
			return -1;
	}
	if (s->tar_count < count)
		return smalti_fail_errno(error, "%s: the list of its files cannot be read", s->name);
	return settle_tars(s, s->path, error);
}

static int make_list(struct smalti_dataset_source *s, struct smalti_error *error)
{
	const int file = smalti_open_unlinked(smalti_temporary_directory(), error);
	if (file < 0)
		return -1;
	s->list = fdopen(file, "w+");
	if (s->list)
		return 0;
	close(file);
	return smalti_fail_errno(error, "a list cannot be opened");
}

int smalti_dataset_source_list(struct smalti_dataset_source *s, struct smalti_error *error)
{
	struct smalti_walk_counts counts = {0};
	forget_tars(s);
	if (s->list)
		fclose(s->list);
	s->list = NULL;
	if (make_list(s, error) < 0 || smalti_dataset_walk(s->path, s->options, s->list, &counts, error) < 0)
		return -1;
	s->size = ftello(s->list);
	smalti_walk_note(&counts, s->note, sizeof(s->note));
	s->passed = counts.passed;
	if (!smalti_walk_is_of_tars(&counts))
		smalti_pass_over(&s->passed, counts.tars, "*.tar");
	return smalti_walk_is_of_tars(&counts) ? list_tars(s, counts.tars, error) : 0;
}

/* Opens the only one, which the spool keeps. Others can open it there, as they do with images in a tar. */
static int open_spooled(struct smalti_dataset_source *s, int from, struct smalti_error *error)
{
	if (spool(s, from, s->name, error) < 0)
		return -1;
	free(s->path);
	s->path = smalti_format(error, "%s", s->spool.path);
	s->file = s->spool.file;
	s->size = s->spool.bytes;
	return s->path ? 0 : -1;
}

/* Opens the only one. */
static int open_path(struct smalti_dataset_source *s, const char *path, struct smalti_error *error)
{
	const bool stream = strcmp(path, "-") == 0;
	s->name = smalti_format(error, "%s", stream ? "standard input" : path);
	s->path = smalti_format(error, "%s", path);
	if (!s->name || !s->path)
		return -1;
	if (stream)
		return open_spooled(s, STDIN_FILENO, error);
	if (smalti_is_directory(path))
		return smalti_dataset_source_list(s, error);
	const int file = s->file = smalti_open_regular(path, &s->size, error);
	if (file < 0 || !is_packed(file))
		return file < 0 ? -1 : 0;
	const int status = open_spooled(s, file, error);
	if (status < 0)
		s->file = -1;
	close(file);
	return status;
}

static int open_tars(struct smalti_dataset_source *s, struct smalti_error *error)
{
	s->path = smalti_format(error, "%s", s->tars[0].path);
	s->name = smalti_format(error, "%s and %lld more", s->tars[0].path, (long long)s->tar_count - 1);
	return s->path && s->name ? settle_tars(s, NULL, error) : -1;
}

static int add_path(struct smalti_dataset_source *s, const char *path, int64_t count,
		    struct smalti_error *error)
{
	if (smalti_check_text(path, "data set", error) < 0)
		return -1;
	if (count > 1 && strcmp(path, "-") == 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "standard input: is a data set of its own, found %lld others beside it",
				   (long long)count - 1);
	if (strchr(path, '{') && access(path, F_OK) < 0)
		return smalti_braces_expand(path, TARS_MAX, add_tar, s, error);
	char *copy = smalti_format(error, "%s", path);
	return copy ? add_tar(s, copy, error) : -1;
}

int smalti_dataset_source_open(struct smalti_dataset_source *s, const char *const *paths, int64_t count,
			       struct smalti_error *error)
{
	s->file = s->spool.file = -1;
	if (smalti_check_range(count, 1, TARS_MAX, "number of data sets", error) < 0 ||
	    smalti_check_given(paths, "data set", error) < 0)
		return -1;
	for (int64_t i = 0; i < count; i++)
		if (add_path(s, paths[i], count, error) < 0)
			return -1;
	if (s->tar_count > 1)
		return open_tars(s, error);
	SCOPED(free) char *path = s->tars[0].path;
	s->tars[0].path = NULL;
	forget_tars(s);
	return open_path(s, path, error);
}

/* Follows PixArt's layout, else the list's directory: resolved, so that its name is known. */
static char *default_images(const char *path, struct smalti_error *error)
{
	SCOPED(free) char *directory = smalti_directory_of(path, error);
	char *resolved = directory ? realpath(directory, NULL) : NULL;
	if (directory && !resolved)
		smalti_fail_errno(error, "%s: cannot be resolved", directory);
	const int64_t stem = resolved ? smalti_stem(resolved, "/InternData") : -1;
	if (stem < 0)
		return resolved;
	char *images = smalti_format(error, "%.*s/InternImgs", (int)stem, resolved);
	free(resolved);
	return images;
}

char *smalti_dataset_source_images(const struct smalti_dataset_source *s, bool list, const char *image_root,
				   struct smalti_error *error)
{
	if (!image_root)
		return list ? default_images(s->name, error) : smalti_format(error, "%s", s->path);
	if (list && smalti_is_directory(image_root))
		return smalti_format(error, "%s", image_root);
	if (list)
		smalti_fail(error, SMALTI_EINVAL, "%s: expected a directory, with the list's images",
			    image_root);
	else
		smalti_fail(error, SMALTI_EINVAL,
			    "%s: has its images in it: a directory of images (%s) is for lists", s->name,
			    image_root);
	return NULL;
}

void smalti_dataset_source_close(struct smalti_dataset_source *s)
{
	if (s->file >= 0 && s->file != s->spool.file)
		close(s->file);
	if (s->spool.file >= 0)
		close(s->spool.file);
	if (s->list)
		fclose(s->list);
	forget_tars(s);
	free(s->name);
	free(s->path);
	*s = (struct smalti_dataset_source){.file = -1, .spool = {.file = -1}};
}
