/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "checkpoint/safetensors.h"

#include "base/json.h"

/* Returns the bytes of an element; codings have one value in a block here. */
static int64_t element_bytes(const struct smalti_tensor_view *tensor)
{
	return tensor->coding ? tensor->coding->block_bytes : smalti_dtype_bytes(tensor->dtype);
}

static int tensor_bytes(const struct smalti_tensor_view *tensor, int64_t *bytes, struct smalti_error *error)
{
	*bytes = element_bytes(tensor);
	return smalti_multiply_extents(bytes, tensor->shape, tensor->rank)
		   ? 0
		   : smalti_fail(error, SMALTI_EINVAL, "tensor %s is too large", tensor->name);
}

static const char *stored_name(const struct smalti_tensor_view *tensor)
{
	static const char *const names[] = {
	    [SMALTI_F32] = "F32", [SMALTI_F16] = "F16", [SMALTI_BF16] = "BF16", [SMALTI_I8] = "I8"};
	return tensor->coding ? tensor->coding->name : names[tensor->dtype];
}

/* Adds {"dtype", "shape", "data_offsets"} under the tensor's name and moves *end behind its data. */
static bool describe(cJSON *header, const struct smalti_tensor_view *tensor, int64_t bytes, int64_t *end)
{
	cJSON *entry = cJSON_AddObjectToObject(header, tensor->name);
	bool ok = entry && cJSON_AddStringToObject(entry, "dtype", stored_name(tensor));
	cJSON *shape = ok ? cJSON_AddArrayToObject(entry, "shape") : NULL;
	cJSON *offsets = shape ? cJSON_AddArrayToObject(entry, "data_offsets") : NULL;
	ok = offsets;
	for (int i = 0; ok && i < tensor->rank; i++)
		ok = cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)tensor->shape[i]));
	ok = ok && cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)*end));
	*end += bytes;
	return ok && cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)*end));
}

static char *header_text(const cJSON *metadata, const struct smalti_tensor_view *tensors,
			 const int64_t *bytes, int count, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *header = cJSON_CreateObject();
	int64_t end = 0;
	bool ok = header;
	if (ok && metadata)
		ok = cJSON_AddItemToObject(header, "__metadata__", cJSON_Duplicate(metadata, true));
	for (int i = 0; ok && i < count; i++)
		ok = describe(header, &tensors[i], bytes[i], &end);
	char *text = ok ? cJSON_PrintUnformatted(header) : NULL;
	if (!text)
		smalti_fail(error, SMALTI_ENOMEM, "out of memory for the header of a safetensors file");
	return text;
}

/* Writes the header, padded with spaces so that the data begins at a multiple of 8. */
static void write_header(FILE *stream, const char *text)
{
	size_t length = strlen(text), padded = (length + 7) / 8 * 8;
	for (int i = 0; i < 8; i++)
		fputc((int)(padded >> (8 * i) & 0xff), stream);
	fprintf(stream, "%-*s", (int)padded, text);
}

static int write_tensor(FILE *stream, const char *path, const struct smalti_tensor_view *tensor, int index,
			int64_t bytes, smalti_tensor_source *source, void *user, struct smalti_error *error)
{
	const int64_t size = element_bytes(tensor), elements = bytes / size;
	for (int64_t first = 0; first < elements; first += SMALTI_SOURCE_ELEMENTS) {
		const int64_t count = smalti_min(elements - first, SMALTI_SOURCE_ELEMENTS);
		const void *data = source(user, index, first, count, error);
		if (!data)
			return -1;
		if (fwrite(data, (size_t)size, (size_t)count, stream) != (size_t)count)
			return smalti_fail_errno(error, "%s: cannot be written", path);
	}
	return 0;
}

/* Extends the file by a hole, which reads as zeros and takes no space on the disk. */
static int skip_tensors(FILE *stream, const char *path, const int64_t *bytes, int count,
			struct smalti_error *error)
{
	int64_t end = ftello(stream);
	for (int i = 0; i < count; i++)
		end += bytes[i];
	if (fflush(stream) == 0 && ftruncate(fileno(stream), end) == 0)
		return 0;
	return smalti_fail_errno(error, "%s: cannot be written", path);
}

static int write_file(const char *path, const cJSON *metadata, const struct smalti_tensor_view *tensors,
		      const int64_t *bytes, int count, smalti_tensor_source *source, void *user,
		      struct smalti_error *error)
{
	SCOPED(free) char *text = header_text(metadata, tensors, bytes, count, error);
	struct smalti_writer *writer = text ? smalti_writer_open(path, error) : NULL;
	int status = writer ? 0 : -1;
	if (writer)
		write_header(smalti_writer_stream(writer), text);
	if (writer && !source)
		status = skip_tensors(smalti_writer_stream(writer), path, bytes, count, error);
	for (int i = 0; source && i < count && !status; i++)
		status = write_tensor(smalti_writer_stream(writer), path, &tensors[i], i, bytes[i], source,
				      user, error);
	if (!status)
		return smalti_writer_commit(writer, error);
	smalti_writer_abort(writer);
	return -1;
}

int smalti_safetensors_stream(const char *path, const struct smalti_tensor_view *tensors, int count,
			      smalti_tensor_source *source, void *user, struct smalti_error *error)
{
	return smalti_safetensors_stream_with(path, NULL, tensors, count, source, user, error);
}

int smalti_safetensors_stream_with(const char *path, const cJSON *metadata,
				   const struct smalti_tensor_view *tensors, int count,
				   smalti_tensor_source *source, void *user, struct smalti_error *error)
{
	SCOPED(free) int64_t *bytes = smalti_calloc(count, sizeof(*bytes), error);
	int status = bytes ? 0 : -1;
	for (int i = 0; i < count && !status; i++)
		status = tensor_bytes(&tensors[i], &bytes[i], error);
	if (!status)
		status = write_file(path, metadata, tensors, bytes, count, source, user, error);
	return status;
}

struct views {
	const struct smalti_tensor_view *tensors;
};

static const void *view_source(void *user, int index, int64_t first, int64_t count,
			       struct smalti_error *error)
{
	(void)count, (void)error;
	const struct smalti_tensor_view *tensor = &((const struct views *)user)->tensors[index];
	return (const char *)tensor->data + first * smalti_dtype_bytes(tensor->dtype);
}

int smalti_safetensors_write(const char *path, const struct smalti_tensor_view *tensors, int count,
			     struct smalti_error *error)
{
	struct views views = {tensors};
	return smalti_safetensors_stream(path, tensors, count, view_source, &views, error);
}
