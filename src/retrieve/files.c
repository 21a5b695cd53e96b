/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/files.h"
#include "base/sealed.h"

int smalti_files_add(cJSON *description, const char *directory, const char *name, struct smalti_error *error)
{
	cJSON *files = cJSON_GetObjectItemCaseSensitive(description, "files");
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	char text[SMALTI_HEX_DIGITS + 1];
	uint64_t digest;
	int64_t bytes;
	if (!path || smalti_file_digest(path, &digest, &bytes, error) < 0)
		return -1;
	smalti_hex_print(digest, text);
	if (!files)
		files = cJSON_AddObjectToObject(description, "files");
	cJSON_AddStringToObject(files, name, text);
	return 0;
}

const char *smalti_files_digest(const cJSON *description, const char *name)
{
	const cJSON *files = cJSON_GetObjectItemCaseSensitive(description, "files");
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(files, name));
	return text ? text : "";
}

int smalti_files_check(const cJSON *description, const char *described, const char *directory,
		       const char *name, const char *remedy, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	uint64_t expected, digest;
	int64_t bytes;
	if (!path)
		return -1;
	if (!smalti_hex_parse(smalti_files_digest(description, name), &expected))
		return smalti_fail(error, SMALTI_EFORMAT, "%s: %s has no checksum of it", path, described);
	if (smalti_file_digest(path, &digest, &bytes, error) < 0)
		return -1;
	return digest == expected
		   ? 0
		   : smalti_fail(error, SMALTI_ECORRUPT, "%s: is damaged, its checksum is not that of %s: %s",
				 path, described, remedy);
}

int smalti_files_tensor(const struct smalti_safetensors *file, const char *path, const char *name, int rank,
			const int64_t *shape, const float **values, struct smalti_error *error)
{
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, name);
	bool fits = view && view->usable && view->dtype == SMALTI_F32 && view->rank == rank &&
		    (uintptr_t)view->data % sizeof(float) == 0;
	for (int i = 0; i < rank && fits; i++)
		fits = view->shape[i] == shape[i];
	if (!fits)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "%s: expected the f32 tensor \"%s\" of %" PRId64 " rows", path, name,
				   shape[0]);
	*values = view->data;
	return 0;
}
