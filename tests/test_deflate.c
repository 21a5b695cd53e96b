/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "harness.h"
#include "shard/deflate.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum kind { ZEROS, NOISE, FEATURES, RAMP, NOISY_RAMP };

static const struct chunk_case {
	const char *name;
	enum kind kind;
	int64_t size, bytes;
	bool shrinks;
} cases[] = {
    {"a zero", ZEROS, 2, 2, false},
    {"a byte", NOISE, 1, 1, false},
    {"less than an element", RAMP, 4, 3, false},
    {"zeros, 256 KiB", ZEROS, 2, 1 << 18, true},
    {"noise", NOISE, 2, 1 << 18, false},
    {"noise of f32", NOISE, 4, 1 << 18, false},
    {"f16 values", FEATURES, 2, 1 << 18, true},
    {"f16 values, a prime number", FEATURES, 2, 2 * 65537, true},
    {"f16 values, a byte too many", FEATURES, 2, 2 * 1021 + 1, true},
    {"f32 steps", RAMP, 4, 4 * 10007, true},
    {"f32 steps and 3 bytes", RAMP, 4, 4 * 1021 + 3, true},
    {"elements of 8 bytes", RAMP, 8, 8 * 1021, true},
    {"noise below steps", NOISY_RAMP, 2, 1 << 18, true},
    {"noise below steps of f32", NOISY_RAMP, 4, 1 << 18, true},
    {"noise of one stored block", NOISY_RAMP, 2, 2 * 65535, true},
    {"noise of one stored block and a byte", NOISY_RAMP, 2, 2 * 65536, true},
    {"noise of many blocks, 3 bytes more", NOISY_RAMP, 4, 4 * 150001 + 3, true},
};

static unsigned char *make_values(const struct chunk_case *c)
{
	unsigned char *values = calloc((size_t)c->bytes + 8, 1);
	uint64_t random = 11;
	for (int64_t i = 0; values && i < c->bytes; i++) {
		const float value = test_random(&random);
		const uint32_t step = (uint32_t)(i / c->size);
		if (c->kind == NOISE || (c->kind == NOISY_RAMP && i % c->size < c->size / 2))
			values[i] = (unsigned char)((value + 1) * 128);
		else if (c->kind == FEATURES && i % 2 == 0 && i + 1 < c->bytes)
			smalti_narrow(SMALTI_F16, &value, 1, values + i);
		else if ((c->kind == RAMP && i % c->size < 4) || c->kind == NOISY_RAMP)
			values[i] = (unsigned char)(step >> 8 * (i % c->size));
	}
	return values;
}

/* By the definitions of HDF5's filters: shuffle, unless DEFLATE was left out behind zlib's. */
static bool filters_undo(const struct chunk_case *c, const struct smalti_deflated *deflated,
			 const unsigned char *values)
{
	unsigned char *shuffled = malloc((size_t)c->bytes);
	uLongf length = (uLongf)c->bytes;
	bool same = shuffled;
	if (deflated->mask == 2)
		memcpy(shuffled, deflated->data, (size_t)c->bytes);
	else
		same = uncompress(shuffled, &length, deflated->data, (uLong)deflated->bytes) == Z_OK &&
		       (int64_t)length == c->bytes;
	const int64_t count = c->bytes / c->size;
	for (int64_t i = 0; same && i < c->bytes; i++)
		same = shuffled[i < count * c->size ? i % c->size * count + i / c->size : i] == values[i];
	free(shuffled);
	return same;
}

static void chunks_are_those_of_the_filters(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_deflater deflater = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct chunk_case *c = &cases[i];
		unsigned char *values = make_values(c), *again = malloc((size_t)c->bytes);
		struct smalti_deflated deflated = {0};
		SUCCEEDS(smalti_deflate(&deflater, values, c->bytes, c->size, &deflated, &error), &error,
			 c->name);
		CHECK(c->shrinks ? deflated.mask == 0 && deflated.bytes < c->bytes
				 : deflated.mask == 2 && deflated.bytes == c->bytes,
		      c->name);
		CHECK(filters_undo(c, &deflated, values), c->name);
		SUCCEEDS(smalti_inflate(&deflater, &deflated, again, c->bytes, c->size, &error), &error,
			 c->name);
		CHECK(memcmp(again, values, (size_t)c->bytes) == 0, c->name);
		free(values);
		free(again);
	}
	smalti_deflater_free(&deflater);
}

/* A dataset of elements of c->size bytes in chunks of c->bytes. */
static hid_t make_dataset(hid_t file, const struct chunk_case *c, hsize_t count)
{
	const hsize_t extent[1] = {count};
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, extent, NULL);
	hid_t type = c->size == 1   ? H5T_STD_U8LE
		     : c->size == 2 ? H5T_STD_U16LE
		     : c->size == 4 ? H5T_STD_U32LE
				    : H5T_STD_U64LE;
	H5Pset_chunk(creation, 1, extent);
	H5Pset_shuffle(creation);
	H5Pset_deflate(creation, SMALTI_DEFLATE_LEVEL);
	hid_t dataset = H5Dcreate2(file, "values", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
	H5Sclose(space);
	H5Pclose(creation);
	return dataset;
}

static void hdf5_reads_them(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_deflater deflater = {0};
	char path[512];
	snprintf(path, sizeof(path), "%s/values.h5", test_scratch());
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct chunk_case *c = &cases[i];
		const hsize_t count = (hsize_t)(c->bytes / c->size), start[1] = {0};
		unsigned char *values = make_values(c), *again = calloc((size_t)c->bytes, 1);
		struct smalti_deflated deflated = {0};
		if (count * (hsize_t)c->size == (hsize_t)c->bytes) {
			SUCCEEDS(smalti_deflate(&deflater, values, c->bytes, c->size, &deflated, &error),
				 &error, c->name);
			hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
			hid_t dataset = make_dataset(file, c, count);
			CHECK(H5Dwrite_chunk(dataset, H5P_DEFAULT, deflated.mask, start,
					     (size_t)deflated.bytes, deflated.data) >= 0,
			      c->name);
			H5Dclose(dataset);
			H5Fclose(file);
			file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
			dataset = H5Dopen2(file, "values", H5P_DEFAULT);
			hid_t type = H5Dget_type(dataset);
			CHECK(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, again) >= 0, c->name);
			CHECK(memcmp(again, values, (size_t)c->bytes) == 0, c->name);
			H5Tclose(type);
			H5Dclose(dataset);
			H5Fclose(file);
		}
		free(values);
		free(again);
	}
	smalti_deflater_free(&deflater);
}

static void damage_is_refused(void)
{
	static const struct {
		const char *name;
		int64_t lost; /* bytes of what was compressed */
		int64_t more; /* bytes that are wanted beyond those that there are */
		uint32_t mask;
		enum smalti_code code;
		const char *word;
	} attempts[] = {
	    {"cut short", 5, 0, 0, SMALTI_ECORRUPT, "inflated"},
	    {"less than expected", 0, 2, 0, SMALTI_ECORRUPT, "inflated"},
	    {"more than expected", 0, -2, 0, SMALTI_ECORRUPT, "inflated"},
	    {"not compressed", 0, 0, 2, SMALTI_ECORRUPT, "size"},
	    {"no memory", 0, (int64_t)1 << 60, 0, SMALTI_ENOMEM, "memory"},
	};
	const struct chunk_case *c = &cases[6];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_deflater deflater = {0};
	unsigned char *values = make_values(c), *again = malloc((size_t)c->bytes + 2);
	struct smalti_deflated whole = {0}, changed;
	SUCCEEDS(smalti_deflate(&deflater, values, c->bytes, c->size, &whole, &error), &error, c->name);
	for (size_t i = 0; i < COUNT(attempts); i++) {
		struct smalti_error refused = SMALTI_NO_ERROR;
		changed =
		    (struct smalti_deflated){whole.data, whole.bytes - attempts[i].lost, attempts[i].mask};
		FAILS(smalti_inflate(&deflater, &changed, again, c->bytes + attempts[i].more, c->size,
				     &refused),
		      &refused, attempts[i].code, attempts[i].name, attempts[i].word);
	}
	struct smalti_error refused = SMALTI_NO_ERROR;
	FAILS(smalti_deflate(&deflater, values, (int64_t)1 << 60, c->size, &changed, &refused), &refused,
	      SMALTI_ENOMEM, "no memory to compress", "memory");
	/* And both go on. */
	SUCCEEDS(smalti_deflate(&deflater, values, c->bytes, c->size, &whole, &error), &error, "again");
	SUCCEEDS(smalti_inflate(&deflater, &whole, again, c->bytes, c->size, &error), &error, "again");
	CHECK(memcmp(again, values, (size_t)c->bytes) == 0, "again");
	smalti_deflater_free(&deflater);
	smalti_deflater_free(&deflater);
	free(values);
	free(again);
}

static const struct test tests[] = {
    {"chunks are those of the filters", chunks_are_those_of_the_filters},
    {"HDF5 reads them", hdf5_reads_them},
    {"damage is refused", damage_is_refused},
};

TEST_MAIN("deflate", tests)
