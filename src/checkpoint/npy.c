/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/npy.h"
#include "base/file.h"

/* The header is a dictionary in Python's syntax; NumPy's own are below 200 bytes. */
enum { MAGIC_BYTES = 6, MAX_HEADER = 1 << 16, ALIGNMENT = 64 };

static const char magic[] = "\x93NUMPY";

static const struct stored_type {
	const char *descr, *name;
	int64_t bytes;
	enum smalti_dtype dtype;
	bool usable;
} types[] = {
    {"<f2", "F16", 2, SMALTI_F16, true},
    {"<f4", "F32", 4, SMALTI_F32, true},
    {.descr = "<f8", .name = "F64", .bytes = 8},
};

struct cursor {
	const char *at, *end;
};

/* The dictionary's entries. */
struct header {
	const struct stored_type *type;
	bool has_order, has_shape;
	struct smalti_tensor_view *view;
};

bool smalti_is_npy(const void *data, int64_t size)
{
	return size >= MAGIC_BYTES && memcmp(data, magic, MAGIC_BYTES) == 0;
}

static int unexpected(const struct cursor *c, const char *what, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EFORMAT, "its header: %s was expected at '%.*s'", what,
			   (int)(c->end - c->at < 20 ? c->end - c->at : 20), c->at);
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
		c->at++;
}

/* Skips blanks and then the word, if it is there. */
static bool accept(struct cursor *c, const char *word)
{
	skip_blanks(c);
	const size_t length = strlen(word);
	if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
		return false;
	c->at += length;
	return true;
}

/* Reads a string without escapes, in single or double quotes. */
static int read_string(struct cursor *c, char text[32], struct smalti_error *error)
{
	skip_blanks(c);
	const char quote = c->at < c->end ? *c->at : '\0';
	const char *begin = c->at + 1;
	const char *end =
	    quote == '\'' || quote == '"' ? memchr(begin, quote, (size_t)(c->end - begin)) : NULL;
	if (!end || end - begin > 31 || memchr(begin, '\\', (size_t)(end - begin)))
		return unexpected(c, "a string", error);
	snprintf(text, 32, "%.*s", (int)(end - begin), begin);
	c->at = end + 1;
	return 0;
}

static int read_descr(struct cursor *c, struct header *header, struct smalti_error *error)
{
	char text[32];
	skip_blanks(c);
	if (c->at < c->end && *c->at == '[')
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "an array of records; save one of its fields alone");
	if (read_string(c, text, error))
		return -1;
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (strcmp(text, types[i].descr) == 0) {
			header->type = &types[i];
			return 0;
		}
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "expected an array of type <f2, <f4 or <f8, found %s; save it after "
			   ".astype('<f4')",
			   text);
}

static int read_order(struct cursor *c, struct header *header, struct smalti_error *error)
{
	if (accept(c, "True"))
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "an array in Fortran's order; save it after numpy.ascontiguousarray()");
	if (!accept(c, "False"))
		return unexpected(c, "False", error);
	header->has_order = true;
	return 0;
}

static int read_extent(struct cursor *c, int64_t *extent, struct smalti_error *error)
{
	skip_blanks(c);
	const char *begin = c->at;
	*extent = 0;
	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
		const int digit = *c->at - '0';
		if (!smalti_multiply(extent, 10) || *extent > INT64_MAX - digit)
			return unexpected(c, "an extent below 2^63", error);
		*extent += digit;
	}
	return c->at > begin ? 0 : unexpected(c, "an extent", error);
}

/* Reads a shape: (), (3,) or (3, 4). */
static int read_shape(struct cursor *c, struct header *header, struct smalti_error *error)
{
	struct smalti_tensor_view *view = header->view;
	if (!accept(c, "("))
		return unexpected(c, "a tuple", error);
	bool comma = true;
	while (!accept(c, ")")) {
		if (!comma || view->rank == SMALTI_MAX_RANK)
			return unexpected(c, comma ? "a shape of at most 8 axes" : "a comma", error);
		if (read_extent(c, &view->shape[view->rank++], error))
			return -1;
		comma = accept(c, ",");
	}
	if (view->rank == 1 && !comma)
		return unexpected(c, "a tuple of one extent, with its comma,", error);
	header->has_shape = true;
	return 0;
}

static int read_entry(struct cursor *c, struct header *header, struct smalti_error *error)
{
	char key[32];
	if (read_string(c, key, error))
		return -1;
	if (!accept(c, ":"))
		return unexpected(c, "a colon", error);
	if (strcmp(key, "descr") == 0 && !header->type)
		return read_descr(c, header, error);
	if (strcmp(key, "fortran_order") == 0 && !header->has_order)
		return read_order(c, header, error);
	if (strcmp(key, "shape") == 0 && !header->has_shape)
		return read_shape(c, header, error);
	return smalti_fail(error, SMALTI_EFORMAT,
			   "its header: 'descr', 'fortran_order' and 'shape' were expected once each, found "
			   "'%s'",
			   key);
}

static int read_dictionary(struct cursor *c, struct header *header, struct smalti_error *error)
{
	if (!accept(c, "{"))
		return unexpected(c, "a dictionary", error);
	bool comma = true;
	while (!accept(c, "}")) {
		if (!comma)
			return unexpected(c, "a comma", error);
		if (read_entry(c, header, error))
			return -1;
		comma = accept(c, ",");
	}
	skip_blanks(c);
	if (c->at < c->end)
		return unexpected(c, "nothing more", error);
	if (!header->type || !header->has_order || !header->has_shape)
		return smalti_fail(error, SMALTI_EFORMAT, "its header lacks '%s'",
				   !header->type        ? "descr"
				   : !header->has_order ? "fortran_order"
							: "shape");
	return 0;
}

/* Finds the header's text; *begin becomes the array's offset. */
static int find_header(const unsigned char *bytes, int64_t size, struct cursor *c, int64_t *begin,
		       struct smalti_error *error)
{
	if (!smalti_is_npy(bytes, size))
		return smalti_fail(error, SMALTI_EFORMAT, "not an .npy file");
	const int major = size > MAGIC_BYTES + 1 ? bytes[MAGIC_BYTES] : 0;
	const int width = major == 1 ? 2 : 4; /* of the header's length */
	if (size < MAGIC_BYTES + 2 + width)
		return smalti_fail(error, SMALTI_EFORMAT, "an .npy file that is cut short");
	if (major < 1 || major > 3 || bytes[MAGIC_BYTES + 1] != 0)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "an .npy file of version 1.0, 2.0 or 3.0 was expected, found %d.%d", major,
				   bytes[MAGIC_BYTES + 1]);
	int64_t length = 0;
	for (int i = 0; i < width; i++)
		length |= (int64_t)bytes[MAGIC_BYTES + 2 + i] << (8 * i);
	const char *text = (const char *)bytes + MAGIC_BYTES + 2 + width;
	*begin = MAGIC_BYTES + 2 + width + length;
	if (length > MAX_HEADER || *begin > size)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "a header of %" PRId64 " bytes in a file of %" PRId64
				   ": damaged or cut short",
				   length, size);
	*c = (struct cursor){text, text + length};
	return 0;
}

int smalti_npy_parse(const void *data, int64_t size, struct smalti_tensor_view *view,
		     struct smalti_error *error)
{
	struct cursor cursor = {NULL, NULL};
	int64_t begin = 0;
	*view = (struct smalti_tensor_view){.name = ""};
	struct header header = {.view = view};
	if (find_header(data, size, &cursor, &begin, error) || read_dictionary(&cursor, &header, error))
		return -1;
	int64_t bytes = header.type->bytes;
	if (!smalti_multiply_extents(&bytes, view->shape, view->rank) || bytes != size - begin)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "its shape and type do not fit the %" PRId64
				   " bytes behind its header: damaged or cut short",
				   size - begin);
	view->dtype = header.type->dtype;
	view->stored = header.type->name;
	view->usable = header.type->usable;
	view->data = (const char *)data + begin;
	view->bytes = bytes;
	return 0;
}

/* Writes the extents as in Python's tuples: a comma follows a single one. */
static void write_shape(int rank, const int64_t *shape, char text[SMALTI_MAX_RANK * 22 + 1])
{
	int length = 0;
	text[0] = '\0';
	for (int i = 0; i < rank; i++)
		length += snprintf(text + length, 23, "%" PRId64 ", ", shape[i]);
	if (rank)
		text[length - (rank == 1 ? 1 : 2)] = '\0';
}

int64_t smalti_npy_header(const char *descr, int rank, const int64_t *shape, char header[SMALTI_NPY_HEADER])
{
	char extents[SMALTI_MAX_RANK * 22 + 1];
	const int before = MAGIC_BYTES + 4; /* the version and the text's length */
	write_shape(rank, shape, extents);
	memcpy(header, magic, MAGIC_BYTES);
	const int written =
	    snprintf(header + before, SMALTI_NPY_HEADER - before,
		     "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, extents);
	const int end = (before + written + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	const int length = end - before;
	if (end > SMALTI_NPY_HEADER)
		return 0;
	header[MAGIC_BYTES] = 1;
	header[MAGIC_BYTES + 1] = 0;
	header[MAGIC_BYTES + 2] = (char)(length & 0xff);
	header[MAGIC_BYTES + 3] = (char)(length >> 8);
	memset(header + before + written, ' ', (size_t)(length - written - 1));
	header[end - 1] = '\n';
	return end;
}

int smalti_npy_write(const char *path, const struct smalti_tensor_view *array, struct smalti_error *error)
{
	char header[SMALTI_NPY_HEADER];
	const int64_t length = smalti_npy_header("<f4", array->rank, array->shape, header);
	int64_t bytes = sizeof(float);
	if (!smalti_multiply_extents(&bytes, array->shape, array->rank))
		return smalti_fail(error, SMALTI_EINVAL, "%s: the array is too large", path);
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (!writer)
		return -1;
	fwrite(header, 1, (size_t)length, smalti_writer_stream(writer));
	fwrite(array->data, 1, (size_t)bytes, smalti_writer_stream(writer));
	return smalti_writer_commit(writer, error);
}
