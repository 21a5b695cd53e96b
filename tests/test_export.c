/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "export/export.h"
#include "features_directory.h"
#include "harness.h"
#include "smalti/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* In memory of just their size, so that a sanitizer sees what is read beyond them. */
static void names_are_the_loaders(void)
{
	static const struct {
		const char *key, *extension, *name; /* NULL: refused */
	} cases[] = {
	    {"000.png", ".npy", "000.npy"},
	    {"dir/img.jpg", ".npz", "dir_img.npz"},
	    {"a/b/c.webp", ".npy", "a/b_c.npy"},
	    {"a.b.png", ".npz", "a.b.npz"},
	    {"x.jpeg", ".npy", "x.npy"},
	    {"x.JPEG", ".npy", "x.npy"},
	    {"x.JPG", ".npy", "x.npy"},
	    {"x.PNG", ".npy", "x.PNG"},
	    {"x.png.d/y.png.png", ".npy", "x.npy.d_y.npy.npy"},
	    {"x.webpwebp", ".npy", "x.npywebp"},
	    {"000000123", ".npy", "000000123"},
	    {"a", ".npy", "a"},
	    {"\xc3\xa9 <b>.png", ".npy", "\xc3\xa9 <b>.npy"},
	    {"../x.png", ".npy", ".._x.npy"},
	    {"/x.png", ".npy", "_x.npy"},
	    {"./x.png", ".npy", "._x.npy"},
	    {"a//./b//c.png", ".npy", "a/b/_c.npy"},
	    {"a/./b/c.png", ".npy", "a/b_c.npy"},
	    {"./a/b/c.png", ".npy", "a/b_c.npy"},
	    {"a/", ".npy", "a_"},
	    {"", ".npy", NULL},
	    {".", ".npy", NULL},
	    {"..", ".npy", NULL},
	    {"../../x.png", ".npy", NULL},
	    {"a/../b/x.png", ".npy", NULL},
	    {"a/../../b/x.png", ".npy", NULL},
	    {"/a/x.png", ".npy", NULL},
	    {"//x.png", ".npy", NULL},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		char *key = strdup(cases[i].key);
		char *name = smalti_loader_name(key, cases[i].extension, &error);
		if (cases[i].name)
			CHECK(name && strcmp(name, cases[i].name) == 0, name ? name : cases[i].key);
		else
			FAILS(name ? 0 : -1, &error, SMALTI_EINVAL, cases[i].key, "its ");
		free(name);
		free(key);
	}
}

static void long_names_are_refused(void)
{
	for (int length = 250; length < 260; length++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		char key[300];
		snprintf(key, sizeof(key), "a/b/%0*d.png", length - 6, 0); /* b_ and .npy belong to it */
		char *name = smalti_loader_name(key, ".npy", &error);
		if (length <= 255)
			CHECK(name && (int)strlen(name) == 2 + length, key);
		else
			FAILS(name ? 0 : -1, &error, SMALTI_EINVAL, key, "255 bytes");
		free(name);
	}
}

static void directories_are_the_tools(void)
{
	static const struct {
		const char *caption, *directory;
	} cases[] = {
	    {"prompt", "caption_features_new"},
	    {"sharegpt4v", "sharegpt4v_caption_features_new"},
	    {"long_prompt", "long_caption_features_new"},
	    {"prompt_prompt", "caption_features_new"},
	    {"", "_caption_features_new"},
	    {"a/b", NULL},
	    {"../a", NULL},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		char *directory = smalti_loader_directory(cases[i].caption, &error);
		if (cases[i].directory)
			CHECK(directory && strcmp(directory, cases[i].directory) == 0, cases[i].caption);
		else
			FAILS(directory ? 0 : -1, &error, SMALTI_EINVAL, cases[i].caption, "caption '");
		free(directory);
	}
}

enum { ITEMS = 20 };
static const char *keys[ITEMS];

/* Of a test's scratch directory: the features, and a place for what is exported. */
static void make_directories(struct smalti_export_options *options, enum smalti_export_format format,
			     char from[512], char to[512])
{
	static char texts[ITEMS][16];
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int i = 0; i < ITEMS; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%02d.png", i);
		keys[i] = texts[i];
	}
	const struct features_directory directory = {.dtype = SMALTI_F32,
						     .keys = keys,
						     .count = ITEMS,
						     .caption_count = 1,
						     .captions = {"prompt"},
						     .text_width = 8,
						     .max_tokens = 5,
						     .shard_items = 7,
						     .failed = -1};
	const char *scratch = test_scratch();
	snprintf(from, 512, "%s/features", scratch);
	snprintf(to, 512, "%s/out", scratch);
	SUCCEEDS(make_features_directory(from, &directory, &error), &error, "features");
	smalti_export_defaults(options);
	options->directory = from;
	options->output = to;
	options->format = format;
	options->shard_bytes = 1000;
}

struct watcher {
	int64_t stop; /* after so many rows */
	int64_t calls, seen;
};

static bool on_progress(void *user, const struct smalti_export_progress *progress)
{
	struct watcher *watcher = user;
	watcher->calls++;
	if (!progress->checking)
		watcher->seen = progress->rows;
	return progress->checking || progress->rows < watcher->stop;
}

/* Stopped after every few rows, an export comes to its end; nothing that was safe is made twice. */
static void a_stopped_export_goes_on(void)
{
	for (int format = SMALTI_EXPORT_PIXART; format <= SMALTI_EXPORT_WEBDATASET; format++) {
		char from[512], to[512], path[600];
		struct smalti_export_options options;
		struct smalti_export_progress progress = {.rows = -1};
		struct watcher watcher = {.stop = 0};
		make_directories(&options, (enum smalti_export_format)format, from, to);
		options.on_progress = on_progress;
		options.user = &watcher;
		int64_t before = 0;
		for (watcher.stop = 3; watcher.stop < ITEMS; watcher.stop += 6) {
			struct smalti_error error = SMALTI_NO_ERROR;
			FAILS(smalti_export(&options, &progress, &error), &error, SMALTI_ECANCELLED, to);
			CHECK(watcher.seen == watcher.stop && !progress.complete, "stopped");
			CHECK(progress.before == before && progress.safe >= before &&
				  progress.safe <= watcher.seen,
			      "safe");
			before = progress.safe;
		}
		CHECK(before >= ITEMS / 2, "most of it was safe");
		watcher.stop = ITEMS + 1;
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_export(&options, &progress, &error), &error, to);
		CHECK(progress.complete && progress.rows == ITEMS && progress.before == before, "end");
		snprintf(path, sizeof(path), "%s/.smalti-export.json", to);
		struct stat state, again;
		CHECK(stat(path, &state) == 0, path);
		watcher.calls = 0;
		SUCCEEDS(smalti_export(&options, &progress, &error), &error, to);
		CHECK(watcher.calls == 0 && progress.complete && progress.files == 0, "nothing to do");
		CHECK(stat(path, &again) == 0 && again.st_ino == state.st_ino, "the same file");
	}
}

static const struct test tests[] = {
    {"names are the loader's", names_are_the_loaders},
    {"long names are refused", long_names_are_refused},
    {"directories are the tool's", directories_are_the_tools},
    {"a stopped export goes on", a_stopped_export_goes_on},
};

TEST_MAIN("export", tests)
