/* SPDX-License-Identifier: Apache-2.0 */

#include "base/set.h"
#include "dataset/dataset_format.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { DEPTH_MAX = 64, WATCH_EVERY = 1024, DIRECTORY = 'd' };

struct walk {
	const char *directory;
	const struct smalti_dataset_options *options;
	FILE *list;
	struct smalti_walk_counts *counts;
	struct smalti_set directories; /* that were walked */
	int64_t seen;
};

/* The names in one directory, in their order; the type of each is DT_DIR or DT_REG. */
struct names {
	struct dirent **entries;
	int count, directory;
};

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Follows links; one that leads nowhere is a file that cannot be read. */
static unsigned char type_of(int directory, const struct dirent *entry)
{
	struct stat info;
	if (entry->d_type == DT_REG || entry->d_type == DT_DIR)
		return entry->d_type;
	return fstatat(directory, entry->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode) ? DT_DIR : DT_REG;
}

static int read_names(int directory, const char *path, struct names *names, struct smalti_error *error)
{
	names->directory = directory;
	names->count = scandirat(directory, ".", &names->entries, is_shown, by_name);
	for (int i = 0; i < names->count; i++)
		names->entries[i]->d_type = type_of(directory, names->entries[i]);
	return names->count < 0 ? smalti_fail_errno(error, "%s: cannot be read", path) : 0;
}

static void free_names(struct names *names)
{
	for (int i = 0; i < names->count; i++)
		free(names->entries[i]);
	free(names->entries);
}

/* Returns 1, 0 if the directory was walked before, or -1. */
static int enter(struct walk *w, int directory, const char *path, struct smalti_error *error)
{
	struct stat info;
	if (fstat(directory, &info) < 0)
		return smalti_fail_errno(error, "%s: cannot be examined", path);
	const uint64_t identity[] = {info.st_dev, info.st_ino};
	return smalti_set_add(&w->directories, XXH3_64bits(identity, sizeof(identity)), error);
}

/* Returns how well a name serves as the text of a caption, 0 the best; -1: not at all. */
static int rank_of_text(const struct walk *w, const char *name)
{
	const char *dot = strrchr(name, '.');
	const int caption = dot ? smalti_dataset_caption_of(w->options, dot + 1) : -1;
	if (caption >= 0)
		return caption;
	return dot && strcmp(dot, ".json") == 0 ? SMALTI_DATASET_CAPTIONS_MAX : -1;
}

/* Tells whether file `index` is a caption of no image, and the one that stands for all with its stem. These
 * are among the names that begin with the stem. */
static bool is_lone_text(const struct walk *w, const struct names *names, int index)
{
	const char *name = names->entries[index]->d_name;
	const int rank = rank_of_text(w, name);
	const size_t stem = rank < 0 ? 0 : (size_t)(strrchr(name, '.') - name) + 1;
	int first = index;
	while (first > 0 && strncmp(names->entries[first - 1]->d_name, name, stem) == 0)
		first--;
	for (int i = first; rank >= 0 && i < names->count; i++) {
		const char *other = names->entries[i]->d_name;
		if (strncmp(other, name, stem) != 0)
			break;
		if (i == index || names->entries[i]->d_type != DT_REG || strchr(other + stem, '.'))
			continue;
		const int other_rank = rank_of_text(w, other);
		if (smalti_dataset_is_image(other) || (other_rank >= 0 && other_rank < rank))
			return false;
	}
	return rank >= 0;
}

static int put(struct walk *w, int kind, const char *path, size_t length, struct smalti_error *error)
{
	const struct smalti_dataset_options *o = w->options;
	fputc(kind, w->list);
	fwrite(path, 1, length, w->list);
	fputc('\0', w->list);
	if (ferror(w->list))
		return smalti_fail_errno(error, "the list of a directory's files cannot be kept: $TMPDIR");
	if (++w->seen % WATCH_EVERY == 0 && o->on_progress && !o->on_progress(o->user, 0.0))
		return smalti_fail(error, SMALTI_ECANCELLED, "%s: stopped while it was listed", w->directory);
	return 0;
}

static bool holds_image(const struct names *names, const char *name)
{
	char start[SMALTI_IMAGE_START];
	SCOPED(close)
	const int file = openat(names->directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return file >= 0 && read(file, start, sizeof(start)) == (ssize_t)sizeof(start) &&
	       smalti_dataset_begins_image(start, sizeof(start));
}

/* Looks at the name only: there are as many texts as images. */
static bool is_text(const struct walk *w, const char *name)
{
	const char *dot = strrchr(name, '.');
	for (int i = 0; dot && i < SMALTI_CAPTION_NAME_COUNT; i++)
		if (strcmp(dot + 1, smalti_dataset_caption_names[i]) == 0)
			return true;
	return rank_of_text(w, name) >= 0;
}

/* Looks into files that are no images by name, but may be. */
static void count_unread(struct walk *w, const struct names *names, int index, const char *below)
{
	const char *name = names->entries[index]->d_name;
	const int unread = smalti_dataset_unread_image(name);
	const bool misnamed = unread < 0 && !is_text(w, name) && holds_image(names, name);
	char path[SMALTI_KEY_BYTES];
	if (unread >= 0)
		w->counts->unread[unread]++;
	w->counts->misnamed += misnamed;
	snprintf(path, sizeof(path), "%s%s", below, name);
	smalti_pass_over(&w->counts->passed, unread >= 0 || misnamed, path);
}

/* Returns what to do with a name: DIRECTORY, what the list calls it, or 0. */
static int count_name(struct walk *w, const struct names *names, int index, const char *below)
{
	struct smalti_walk_counts *counts = w->counts;
	const char *name = names->entries[index]->d_name;
	if (names->entries[index]->d_type == DT_DIR)
		return DIRECTORY;
	if (smalti_dataset_is_image(name)) {
		counts->images++;
		return SMALTI_WALK_IMAGE;
	}
	if (smalti_dataset_is_tar(name)) {
		counts->tars++;
		return SMALTI_WALK_TAR;
	}
	if (w->options->images) {
		count_unread(w, names, index, below);
		return 0;
	}
	if (!is_lone_text(w, names, index))
		return 0;
	counts->texts++;
	counts->captions += rank_of_text(w, name) < SMALTI_DATASET_CAPTIONS_MAX;
	return SMALTI_WALK_TEXT;
}

static int walk_directory(struct walk *w, const char *below, int depth, struct smalti_error *error);

/* `below` is the directory's path below the one of the data set, "" or ending with a slash. */
static int walk_names(struct walk *w, const char *below, const struct names *names, int depth,
		      struct smalti_error *error)
{
	int status = 0;
	for (int i = 0; i < names->count && status == 0; i++) {
		const char *name = names->entries[i]->d_name;
		const int kind = count_name(w, names, i, below);
		if (!kind)
			continue;
		SCOPED(free)
		char *path = smalti_format(error, "%s%s%s", below, name, kind == DIRECTORY ? "/" : "");
		if (!path)
			return -1;
		if (kind == DIRECTORY)
			status = walk_directory(w, path, depth + 1, error);
		else if (kind == SMALTI_WALK_TEXT)
			status = put(w, kind, path, (size_t)(strrchr(path, '.') - path), error);
		else
			status = put(w, kind, path, strlen(path), error);
	}
	return status;
}

static int walk_directory(struct walk *w, const char *below, int depth, struct smalti_error *error)
{
	if (depth > DEPTH_MAX)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s/%s: directories in more than %d directories", w->directory, below,
				   DEPTH_MAX);
	SCOPED(free) char *path = smalti_format(error, "%s/%s", w->directory, below);
	SCOPED(close) const int directory = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct names names = {0};
	int status = directory >= 0 ? enter(w, directory, path, error) : -1;
	if (status > 0)
		status = read_names(directory, path, &names, error);
	if (directory < 0 && path)
		smalti_fail_errno(error, "%s: the directory cannot be opened", path);
	if (status == 0)
		status = walk_names(w, below, &names, depth, error);
	free_names(&names);
	return status;
}

int smalti_dataset_walk(const char *directory, const struct smalti_dataset_options *options, FILE *list,
			struct smalti_walk_counts *counts, struct smalti_error *error)
{
	struct walk walk = {.directory = directory, .options = options, .list = list, .counts = counts};
	int status = walk_directory(&walk, "", 0, error);
	if (status == 0 && fflush(list) != 0)
		status = smalti_fail_errno(error, "the list of a directory's files cannot be kept: $TMPDIR");
	smalti_set_free(&walk.directories);
	return status;
}

bool smalti_walk_is_of_tars(const struct smalti_walk_counts *counts)
{
	return counts->tars > 0 && counts->images == 0 && counts->captions == 0;
}

static void add_count(char *note, size_t size, int64_t count, const char *extension)
{
	if (count > 0)
		smalti_append(note, size, ", ", "%" PRId64 " %s", count, extension);
}

void smalti_walk_note(const struct smalti_walk_counts *counts, char *note, size_t size)
{
	char list[256] = "";
	for (int i = 0; i < SMALTI_WALK_UNREAD && smalti_dataset_unread_extensions[i]; i++)
		add_count(list, sizeof(list), counts->unread[i], smalti_dataset_unread_extensions[i]);
	add_count(list, sizeof(list), counts->misnamed, "of other names");
	if (!smalti_walk_is_of_tars(counts))
		add_count(list, sizeof(list), counts->tars, ".tar");
	note[0] = '\0';
	if (list[0])
		snprintf(
		    note, size,
		    "passed over %s, such as %s: images are read from .jpg, .jpeg, .jfif and such, .png and "
		    ".webp, or from tars alone",
		    list, counts->passed.count ? counts->passed.first : "*.tar");
}
