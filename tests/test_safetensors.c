/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A file in memory: length, header, `data` bytes that count up from 0. Free with free(). */
static unsigned char *build(const char *header, size_t data, size_t *size)
{
	size_t length = strlen(header);
	*size = 8 + length + data;
	unsigned char *file = malloc(*size);
	for (int i = 0; i < 8; i++)
		file[i] = (unsigned char)(length >> (8 * i));
	memcpy(file + 8, header, length);
	for (size_t i = 0; i < data; i++)
		file[8 + length + i] = (unsigned char)i;
	return file;
}

static const char good[] = "{\"__metadata__\":{\"format\":\"pt\"},"
			   "\"b\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[4,10]},"
			   "\"a.scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
			   "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[10,10]},"
			   "\"Z\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[10,18]},"
			   "\"odd\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[18,22]}}  ";
enum { GOOD_DATA = 22 };

static void tensors_are_found_where_they_lie(void)
{
	size_t size;
	unsigned char *bytes = build(good, GOOD_DATA, &size);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_safetensors *file = smalti_safetensors_parse(bytes, (int64_t)size, &error);
	SUCCEEDS(file ? 0 : -1, &error, "parse");
	static const char *const sorted[] = {"Z", "a.scalar", "b", "empty", "odd"};
	CU_ASSERT_EQUAL_FATAL(file->count, 5);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_STRING_EQUAL(file->tensors[i].name, sorted[i]);

	const unsigned char *data = bytes + size - GOOD_DATA;
	const struct smalti_tensor_view *b = smalti_safetensors_find(file, "b");
	CU_ASSERT_TRUE(b->dtype == SMALTI_F16 && b->rank == 1 && b->shape[0] == 3 && b->bytes == 6 &&
		       b->usable);
	CU_ASSERT_PTR_EQUAL(b->data, data + 4);
	const struct smalti_tensor_view *odd = smalti_safetensors_find(file, "odd");
	CU_ASSERT_TRUE(odd->dtype == SMALTI_BF16 && odd->rank == 2 && odd->shape[1] == 2);
	const struct smalti_tensor_view *scalar = smalti_safetensors_find(file, "a.scalar");
	CU_ASSERT_TRUE(scalar->dtype == SMALTI_F32 && scalar->rank == 0 && scalar->bytes == 4);
	CU_ASSERT_FALSE(smalti_safetensors_find(file, "Z")->usable);
	CU_ASSERT_PTR_NULL(smalti_safetensors_find(file, "z"));
	CU_ASSERT_PTR_NULL(smalti_safetensors_find(file, "__metadata__"));
	smalti_safetensors_close(file);
	free(bytes);
}

#define ONE(dtype, shape, begin, end)                                                                        \
	"{\"t\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}}"
#define TENSOR(name, begin, end)                                                                             \
	"\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" begin "," end "]}"

static void bad_headers_are_refused(void)
{
	static const struct {
		const char *what, *header;
		size_t data;
		const char *word;
	} cases[] = {
	    {"array", "[]", 0, "not an object"},
	    {"leading space", " {}", 0, "not an object"},
	    {"empty header", "", 0, "not an object"},
	    {"not JSON", "{\"a\":", 0, "JSON"},
	    {"data without tensors", "{}", 1, "behind the last"},
	    {"unknown dtype", ONE("F128", "[1]", "0", "16"), 16, "F128"},
	    {"dtype in lower case", ONE("f32", "[1]", "0", "4"), 4, "f32"},
	    {"negative shape", ONE("F32", "[-1,-1]", "0", "4"), 4, "shape"},
	    {"fractional shape", ONE("F32", "[1.5]", "0", "4"), 4, "shape"},
	    {"shape of nine axes", ONE("F32", "[1,1,1,1,1,1,1,1,1]", "0", "4"), 4, "shape"},
	    {"shape is a number", ONE("F32", "1", "0", "4"), 4, "shape"},
	    {"no shape", "{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "shape"},
	    {"no offsets", "{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets"},
	    {"three offsets", "{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4,
	     "data_offsets"},
	    {"tensor is a number", "{\"t\":1}", 0, "dtype"},
	    {"product of 2^64", ONE("F32", "[4294967296,4294967296]", "0", "0"), 0, "do not fit"},
	    {"product times size of 2^64", ONE("F32", "[2147483648,2147483648]", "0", "0"), 0, "do not fit"},
	    {"the same of an empty tensor", ONE("F32", "[0,4294967296,4294967296]", "0", "0"), 0,
	     "do not fit"},
	    {"the same of a dtype that is only listed", ONE("F4", "[0,4294967296,4294967296]", "0", "0"), 0,
	     "do not fit"},
	    {"too small", ONE("F32", "[2]", "0", "4"), 4, "do not fit"},
	    {"too large", ONE("F16", "[1]", "0", "4"), 4, "do not fit"},
	    {"begin behind end", ONE("F32", "[1]", "4", "0"), 4, "[begin, end]"},
	    {"end behind the file", ONE("F32", "[2]", "0", "8"), 4, "data_offsets"},
	    {"negative begin", ONE("F32", "[2]", "-4", "4"), 4, "data_offsets"},
	    {"offsets of 2^63", ONE("F32", "[1]", "9223372036854775808", "9223372036854775812"), 4,
	     "data_offsets"},
	    {"overlap", "{" TENSOR("a", "0", "4") "," TENSOR("b", "2", "6") "}", 6, "overlap"},
	    {"the same range", "{" TENSOR("a", "0", "4") "," TENSOR("b", "0", "4") "}", 4, "overlap"},
	    {"hole", "{" TENSOR("a", "0", "4") "," TENSOR("b", "5", "9") "}", 9, "hole"},
	    {"hole at the start", "{" TENSOR("a", "1", "5") "}", 5, "hole"},
	    {"bytes behind", "{" TENSOR("a", "0", "4") "}", 5, "behind the last"},
	    {"the same name", "{" TENSOR("a", "0", "4") "," TENSOR("a", "4", "8") "}", 8, "twice"},
	    {"metadata of numbers", "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
	    {"metadata is a string", "{\"__metadata__\":\"a\"}", 0, "__metadata__"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t size;
		unsigned char *bytes = build(cases[i].header, cases[i].data, &size);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_safetensors *file = smalti_safetensors_parse(bytes, (int64_t)size, &error);
		CHECK(!file && error.message[0] && strstr(error.message, cases[i].word), cases[i].what);
		CHECK(error.code == SMALTI_EFORMAT || error.code == SMALTI_EUNSUPPORTED, cases[i].what);
		smalti_safetensors_close(file);
		free(bytes);
	}
}

static void deep_headers_are_refused(void)
{
	enum { DEPTH = 100000 };
	char *header = malloc(DEPTH + 8);
	strcpy(header, "{\"a\":");
	memset(header + 5, '[', DEPTH);
	header[5 + DEPTH] = '\0';
	size_t size;
	unsigned char *bytes = build(header, 0, &size);
	struct smalti_error error = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(smalti_safetensors_parse(bytes, (int64_t)size, &error));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "deep"));
	free(bytes);
	free(header);
}

/* Exactly `size` bytes on the heap: a sanitizer sees every step beyond. */
static bool opens(const unsigned char *bytes, size_t size)
{
	unsigned char *copy = malloc(size ? size : 1);
	memcpy(copy, bytes, size);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_safetensors *file = smalti_safetensors_parse(copy, (int64_t)size, &error);
	bool opened = file;
	CHECK(opened == (error.code == SMALTI_OK), "an error or a file");
	unsigned sum = 0;
	for (int64_t i = 0; opened && i < file->count; i++) {
		const struct smalti_tensor_view *view = &file->tensors[i];
		for (int64_t j = 0; j < view->bytes; j++)
			sum += ((const unsigned char *)view->data)[j];
	}
	smalti_safetensors_close(file);
	free(copy);
	return opened && sum < 1000000;
}

static void every_cut_is_refused(void)
{
	size_t size;
	unsigned char *bytes = build(good, GOOD_DATA, &size);
	CU_ASSERT_TRUE(opens(bytes, size));
	for (size_t cut = 0; cut < size; cut++)
		if (opens(bytes, cut))
			CU_FAIL("a cut file was accepted");
	free(bytes);
}

/* What a flipped bit makes may be valid (another name); it must never lead outside the file. */
static void flipped_bits_are_survived(void)
{
	size_t size;
	unsigned char *bytes = build(good, GOOD_DATA, &size);
	for (size_t bit = 0; bit < 8 * (size - GOOD_DATA); bit++) {
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		bool opened = opens(bytes, size);
		if (opened && bit < 64)
			CU_FAIL("a wrong header length was accepted");
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	free(bytes);
}

static void what_is_written_is_read(void)
{
	static const float values[] = {1, -2.5f, 3e-8f, 4, 5, 6};
	static const uint16_t halves[] = {0x3c00, 0x7bff, 0x0001};
	const struct smalti_tensor_view tensors[] = {
	    {.name = "latents", .dtype = SMALTI_F32, .rank = 3, .shape = {1, 2, 3}, .data = values},
	    {.name = "a \"quoted\" n\u00e4me", .dtype = SMALTI_F16, .rank = 1, .shape = {3}, .data = halves},
	    {.name = "none", .dtype = SMALTI_F32, .rank = 2, .shape = {0, 4}, .data = values},
	    {.name = "scalar", .dtype = SMALTI_F32, .data = values + 1},
	};
	for (int count = 0; count <= 4; count++) {
		const char *path = test_file("t.safetensors");
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_safetensors_write(path, tensors, count, &error), &error, "write");
		struct smalti_safetensors *file = smalti_safetensors_open(path, &error);
		SUCCEEDS(file ? 0 : -1, &error, "open");
		CU_ASSERT_EQUAL_FATAL(file->count, count);
		for (int i = 0; i < count; i++) {
			const struct smalti_tensor_view *view =
			    smalti_safetensors_find(file, tensors[i].name);
			CU_ASSERT_PTR_NOT_NULL_FATAL(view);
			CHECK(view->dtype == tensors[i].dtype && view->rank == tensors[i].rank, view->name);
			CHECK(!memcmp(view->shape, tensors[i].shape, sizeof(view->shape)), view->name);
			CHECK(!memcmp(view->data, tensors[i].data, (size_t)view->bytes), view->name);
			CHECK(i || (view->bytes == 24 && (uintptr_t)view->data % 8 == 0), view->name);
		}
		smalti_safetensors_close(file);
	}
}

static void writing_fails_whole(void)
{
	const struct smalti_tensor_view huge = {.name = "t", .rank = 2, .shape = {1ll << 40, 1ll << 40}};
	const struct smalti_tensor_view some = {.name = "t", .rank = 1, .shape = {4096}, .data = good};
	const char *path = test_file("t.safetensors");
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(smalti_safetensors_write(path, &huge, 1, &error), &error, SMALTI_EINVAL, "huge", "too large");

	float *data = calloc(4096, sizeof(*data));
	struct smalti_tensor_view full = some;
	full.data = data;
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 1000;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(smalti_safetensors_write(path, &full, 1, &error), &error, SMALTI_EIO, "full", "t.safetensors");
	setrlimit(RLIMIT_FSIZE, &old);
	struct smalti_error absent = SMALTI_NO_ERROR;
	FAILS(smalti_safetensors_open(path, &absent) ? 0 : -1, &absent, SMALTI_ENOENT, "no file", "No such");
	free(data);
}

enum { PIECES = 2 * SMALTI_SOURCE_ELEMENTS + 3 };

/* Element i of tensor k is i + k / 2; gives up at the element that `user` points to. */
static const void *count_up(void *user, int index, int64_t first, int64_t count, struct smalti_error *error)
{
	static float values[SMALTI_SOURCE_ELEMENTS];
	if (first + count > *(const int64_t *)user) {
		smalti_fail(error, SMALTI_ECANCELLED, "stopped");
		return NULL;
	}
	for (int64_t i = 0; i < count; i++)
		values[i] = (float)(first + i) + 0.5f * (float)index;
	return values;
}

static void pieces_make_the_file(void)
{
	const struct smalti_tensor_view tensors[] = {
	    {.name = "b", .dtype = SMALTI_F32, .rank = 1, .shape = {PIECES}},
	    {.name = "a", .dtype = SMALTI_F32, .rank = 2, .shape = {2, 3}},
	};
	const char *path = test_file("t.safetensors");
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t stop = PIECES - 1;
	FAILS(smalti_safetensors_stream(path, tensors, 2, count_up, &stop, &error), &error, SMALTI_ECANCELLED,
	      "given up", "stopped");
	CHECK(access(path, F_OK) != 0, "nothing is left");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	stop = PIECES;
	SUCCEEDS(smalti_safetensors_stream(path, tensors, 2, count_up, &stop, &error), &error, "stream");
	struct smalti_safetensors *file = smalti_safetensors_open(path, &error);
	SUCCEEDS(file ? 0 : -1, &error, "open");
	for (int k = 0; k < 2; k++) {
		const struct smalti_tensor_view *view = smalti_safetensors_find(file, tensors[k].name);
		const float *values = view->data;
		const int64_t count = view->bytes / (int64_t)sizeof(float);
		CHECK(count == (k ? 6 : PIECES), view->name);
		bool equal = true;
		for (int64_t i = 0; i < count; i++)
			equal = equal && values[i] == (float)i + 0.5f * (float)k;
		CHECK(equal, view->name);
	}
	smalti_safetensors_close(file);
}

static const struct test tests[] = {
    {"tensors are found where they lie", tensors_are_found_where_they_lie},
    {"bad headers are refused", bad_headers_are_refused},
    {"deep headers are refused", deep_headers_are_refused},
    {"every cut is refused", every_cut_is_refused},
    {"flipped bits are survived", flipped_bits_are_survived},
    {"what is written is read", what_is_written_is_read},
    {"writing fails whole", writing_fails_whole},
    {"pieces make the file", pieces_make_the_file},
};

TEST_MAIN("safetensors", tests)
