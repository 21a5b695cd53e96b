/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/pipeline_directory.h"
#include "base/file.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

enum { COPY_BLOCK = 1 << 20 };

/* Recognises OWNER/NAME. */
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

/* Finds the only snapshot of a folder of Hugging Face's cache; "": there are none, or several. */
static void find_only_snapshot(const char *folder, char snapshot[PATH_MAX])
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/snapshots", folder);
	SCOPED(closedir) DIR *entries = opendir(path);
	int found = 0;
	for (const struct dirent *entry; entries && (entry = readdir(entries));) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(snapshot, PATH_MAX, "%s/snapshots/%s", folder, entry->d_name);
		found++;
	}
	if (found != 1 || !smalti_is_directory(snapshot))
		snapshot[0] = '\0';
}

/* Finds the snapshot of the commit of refs/main in a folder of Hugging Face's cache, or the only one, as a
 * download of another revision leaves it; "": there is none. */
static void find_snapshot(const char *folder, char snapshot[PATH_MAX])
{
	char path[PATH_MAX], commit[128];
	snprintf(path, sizeof(path), "%s/refs/main", folder);
	snapshot[0] = '\0';
	if (smalti_read_line(path, commit, sizeof(commit)) && !strchr(commit, '/')) {
		snprintf(snapshot, PATH_MAX, "%s/snapshots/%s", folder, commit);
		if (smalti_is_directory(snapshot))
			return;
	}
	find_only_snapshot(folder, snapshot);
}

/* Finds the snapshot of OWNER/NAME in the cache of Hugging Face's programs. */
static void find_cached(const char *name, char snapshot[PATH_MAX])
{
	static const struct {
		const char *variable, *below;
	} places[] = {{"HF_HUB_CACHE", ""},
		      {"HF_HOME", "/hub"},
		      {"XDG_CACHE_HOME", "/huggingface/hub"},
		      {"HOME", "/.cache/huggingface/hub"}};
	size_t i = 0;
	while (i < COUNT_OF(places) - 1 && !getenv(places[i].variable))
		i++;
	const char *directory = getenv(places[i].variable), *slash = strchr(name, '/');
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s%s/models--%.*s--%s", directory ? directory : "", places[i].below,
		 (int)(slash - name), name, slash + 1);
	find_snapshot(folder, snapshot);
}

static int fail_missing(const char *directory, struct smalti_error *error)
{
	char snapshot[PATH_MAX] = "";
	if (is_hub_name(directory))
		find_cached(directory, snapshot);
	if (snapshot[0])
		return smalti_fail(
		    error, SMALTI_EIO,
		    "%s: no such directory; Hugging Face's cache has a model of that name: give %s",
		    directory, snapshot);
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

/* Names what makes a directory of a file, as far as its name tells. */
static int fail_single_file(const char *path, const char *expected, struct smalti_error *error)
{
	const char *end = strrchr(path, '.');
	if (end && !strcmp(end, ".pth"))
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "%s: is a single file; %s; if PixArt's own code wrote it, \"python3 -m smalti.convert %s "
		    "-o DIR\" makes a directory for --transformer",
		    path, expected, path);
	return smalti_fail(
	    error, SMALTI_EUNSUPPORTED,
	    "%s: is a single file; %s: convert it with diffusers, or download the model in that layout", path,
	    expected);
}

int smalti_pipeline_directory_check(const char *directory, struct smalti_error *error)
{
	struct stat info;
	char snapshot[PATH_MAX];
	if (stat(directory, &info))
		return fail_missing(directory, error);
	if (S_ISDIR(info.st_mode)) {
		find_snapshot(directory, snapshot);
		return snapshot[0]
			   ? smalti_fail(error, SMALTI_EIO,
					 "%s: is a folder of Hugging Face's cache; the model is in %s",
					 directory, snapshot)
			   : 0;
	}
	return fail_single_file(directory, "a pipeline's directory in diffusers' layout was expected", error);
}

/* Fails if LoRA weights are there instead of a model. */
static int fail_adapter(const char *directory, struct smalti_error *error)
{
	static const char *const adapters[] = {"adapter_config.json", "pytorch_lora_weights.safetensors"};
	for (size_t i = 0; i < COUNT_OF(adapters); i++)
		if (smalti_find_in(directory, adapters[i], NULL) > 0)
			return smalti_fail(
			    error, SMALTI_EUNSUPPORTED,
			    "%s: holds LoRA weights (%s), no model: give them to --lora of generate, "
			    "extract or serve, or merge them into a model by peft's merge_and_unload()",
			    directory, adapters[i]);
	return 0;
}

int smalti_component_check(const char *directory, struct smalti_error *error)
{
	struct stat info;
	const char *suffix = strrchr(directory, '.');
	if (suffix && strcmp(suffix, ".gguf") == 0)
		return 0;
	if (stat(directory, &info) == 0 && !S_ISDIR(info.st_mode))
		return fail_single_file(directory,
					"the directory of one component was expected, with its config.json, "
					"as diffusers saves it",
					error);
	return smalti_find_in(directory, "config.json", NULL) ? 0 : fail_adapter(directory, error);
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
	if (fail_adapter(directory, error) < 0)
		return -1;
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

static int copy_stream(FILE *from, FILE *to, struct smalti_error *error)
{
	SCOPED(free) char *block = smalti_calloc(1, COPY_BLOCK, error);
	if (!block)
		return -1;
	size_t length = fread(block, 1, COPY_BLOCK, from);
	if (smalti_pointer_check(block, length, error) < 0)
		return -1;
	for (; length > 0; length = fread(block, 1, COPY_BLOCK, from))
		fwrite(block, 1, length, to);
	return ferror(from) ? smalti_fail_errno(error, "cannot be read") : 0;
}

int smalti_pipeline_copy(const char *from, const char *to, struct smalti_error *error)
{
	int64_t size;
	SCOPED(fclose) FILE *stream = smalti_open_stream(from, &size, error);
	struct smalti_writer *writer = stream ? smalti_writer_open(to, error) : NULL;
	if (!writer)
		return -1;
	if (copy_stream(stream, smalti_writer_stream(writer), error) == 0)
		return smalti_writer_commit(writer, error);
	smalti_error_prefix(error, "%s", from);
	smalti_writer_abort(writer);
	return -1;
}
