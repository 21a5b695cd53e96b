/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/quantize.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/pipeline_directory.h"
#include "jobs/quantize_component.h"

#include <dirent.h>
#include <sys/stat.h>

enum { MAX_INDEX = 1 << 20 };
static const char index_name[] = "model_index.json";

const char *const smalti_quantizations[] = {
    [SMALTI_QUANTIZE_INT8] = "int8", [SMALTI_QUANTIZE_FP8] = "fp8", NULL};

/* Says how components are written. */
struct work {
	const char *variant;
	enum smalti_quantization quantization;
	struct smalti_quantize_result *result;
};

/* Copies the regular files of a directory; links are followed, as those of Hugging Face's cache. */
static int copy_directory(const char *from, const char *to, struct smalti_error *error)
{
	SCOPED(closedir) DIR *directory = opendir(from);
	if (!directory)
		return smalti_fail_errno(error, "%s: cannot be read", from);
	if (smalti_make_directory(to, error) < 0)
		return -1;
	int status = 0;
	for (struct dirent *entry; status == 0 && (entry = readdir(directory));) {
		struct stat info;
		SCOPED(free) char *source = smalti_format(error, "%s/%s", from, entry->d_name);
		SCOPED(free) char *target = smalti_format(error, "%s/%s", to, entry->d_name);
		if (!source || !target)
			return -1;
		if (entry->d_name[0] != '.' && (stat(source, &info) || S_ISREG(info.st_mode)))
			status = smalti_pipeline_copy(source, target, error);
	}
	return status;
}

/* Writes one component of a pipeline: in 8 bits if it can be, else as it is. */
static int write_part(const struct work *work, const char *name, const char *source, const char *directory,
		      struct smalti_error *error)
{
	const bool quantized = strcmp(name, "text_encoder") == 0 || strcmp(name, "transformer") == 0;
	SCOPED(free) char *from = smalti_format(error, "%s/%s", source, name);
	SCOPED(free) char *to = smalti_format(error, "%s/%s", directory, name);
	if (!from || !to)
		return -1;
	if (!quantized)
		return copy_directory(from, to, error);
	if (smalti_make_directory(to, error) < 0)
		return -1;
	return smalti_quantize_component(from, to, work->variant, work->quantization, work->result, error);
}

/* Tells whether model_index.json says by this member that the pipeline has a component: [LIBRARY, CLASS]. */
static bool is_component(const cJSON *member)
{
	return cJSON_GetArraySize(member) == 2 && cJSON_IsString(cJSON_GetArrayItem(member, 0)) &&
	       cJSON_IsString(cJSON_GetArrayItem(member, 1));
}

static int write_pipeline(const struct work *work, const char *source, const char *directory,
			  struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", source, index_name);
	SCOPED(free) char *target = smalti_format(error, "%s/%s", directory, index_name);
	SCOPED(cJSON_Delete) cJSON *index = path && target ? smalti_json_read(path, MAX_INDEX, error) : NULL;
	const cJSON *member;
	if (!index)
		return -1;
	cJSON_ArrayForEach (member, index) {
		if (!is_component(member))
			continue;
		if (strchr(member->string, '/') || member->string[0] == '.')
			return smalti_fail(error, SMALTI_EFORMAT,
					   "%s: component \"%s\": expected the name of a directory beside it",
					   path, member->string);
		if (write_part(work, member->string, source, directory, error) < 0)
			return -1;
	}
	return smalti_pipeline_copy(path, target, error);
}

static int write_all(const struct work *work, const char *source, const char *directory,
		     struct smalti_error *error)
{
	if (smalti_find_file(source, NULL) == 0)
		return smalti_pipeline_directory_check(source, error);
	if (smalti_find_in(source, index_name, NULL) > 0)
		return write_pipeline(work, source, directory, error);
	return smalti_quantize_component(source, directory, work->variant, work->quantization, work->result,
					 error);
}

int smalti_quantize(const char *source, const char *target, const char *variant,
		    enum smalti_quantization quantization, struct smalti_quantize_result *result,
		    struct smalti_error *error)
{
	const struct work work = {variant, quantization, result};
	*result = (struct smalti_quantize_result){0};
	const int found = smalti_find_file(target, error);
	if (found)
		return found < 0
			   ? -1
			   : smalti_fail(error, SMALTI_EINVAL,
					 "%s: exists; name a directory that does not, or remove it", target);
	SCOPED(free) char *part = smalti_format(error, "%s.%ld.part", target, (long)getpid());
	if (!part || smalti_make_directory(part, error) < 0)
		return -1;
	int status = write_all(&work, source, part, error);
	if (status == 0 && rename(part, target))
		status = smalti_fail_errno(error, "%s: cannot be renamed to %s", part, target);
	if (status < 0)
		smalti_remove_directory(part);
	return status;
}
