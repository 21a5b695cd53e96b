/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/zip_writer.h"
#include "base/alloc.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

/* Fast: values of features hardly shrink, padding does at any level. */
enum { LEVEL = 1, MEMBERS = 65534, NAME = 65535 };

static const int64_t LARGEST = UINT32_MAX - 1; /* 2^32 - 1 says "see the zip64 record" */

/* 1 January 1980, the earliest there is: the same features make the same file. */
enum {
	DATE = 1 << 5 | 1,
	DEFLATE_VERSION = 20,
	DEFLATED = 8,
	LOCAL = 0x04034b50,
	ENTRY = 0x02014b50,
	END = 0x06054b50,
	UTF8 = 0x800
};

struct smalti_zip {
	FILE *stream;
	int64_t at; /* bytes written */
	int count;
	FILE *directory; /* in memory */
	char *entries;
	size_t length;
	struct libdeflate_compressor *compressor;
};

/* A little-endian value: what zip is made of. */
static void put(FILE *to, uint64_t value, int width)
{
	for (int i = 0; i < width; i++)
		fputc((int)(value >> (8 * i) & 0xff), to);
}

struct smalti_zip *smalti_zip_begin(FILE *stream, struct smalti_error *error)
{
	struct smalti_zip *zip = smalti_calloc(1, sizeof(*zip), error);
	if (!zip)
		return NULL;
	zip->stream = stream;
	zip->directory = open_memstream(&zip->entries, &zip->length);
	zip->compressor = libdeflate_alloc_compressor(LEVEL);
	if (zip->directory && zip->compressor)
		return zip;
	smalti_fail(error, SMALTI_ENOMEM, "out of memory for a zip archive");
	smalti_zip_discard(zip);
	return NULL;
}

/* What the local header and the directory's entry have in common. */
static void put_member(FILE *to, const char *name, uint32_t crc, size_t stored, int64_t bytes)
{
	put(to, DEFLATE_VERSION, 2);
	put(to, UTF8, 2);
	put(to, DEFLATED, 2);
	put(to, (uint64_t)DATE << 16, 4); /* time and date */
	put(to, crc, 4);
	put(to, stored, 4);
	put(to, (uint64_t)bytes, 4);
	put(to, strlen(name), 2);
	put(to, 0, 2); /* extra field */
}

static void write_member(struct smalti_zip *zip, const char *name, uint32_t crc, const void *packed,
			 size_t stored, int64_t bytes)
{
	put(zip->stream, LOCAL, 4);
	put_member(zip->stream, name, crc, stored, bytes);
	fputs(name, zip->stream);
	fwrite(packed, 1, stored, zip->stream);
	put(zip->directory, ENTRY, 4);
	put(zip->directory, DEFLATE_VERSION, 2); /* made by */
	put_member(zip->directory, name, crc, stored, bytes);
	put(zip->directory, 0, 6); /* comment, disk, internal attributes */
	put(zip->directory, 0, 4); /* external ones */
	put(zip->directory, (uint64_t)zip->at, 4);
	fputs(name, zip->directory);
	zip->at += 30 + (int64_t)strlen(name) + (int64_t)stored;
	zip->count++;
}

static int too_large(struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EUNSUPPORTED, "a zip archive has room for 4 GiB and 65,534 members");
}

int smalti_zip_add(struct smalti_zip *zip, const char *name, const void *data, int64_t bytes,
		   struct smalti_error *error)
{
	if (zip->count == MEMBERS || strlen(name) > NAME || bytes > LARGEST)
		return too_large(error);
	const size_t bound = libdeflate_deflate_compress_bound(zip->compressor, (size_t)bytes);
	char *packed = smalti_aligned_alloc((int64_t)bound, 1, error);
	if (!packed)
		return -1;
	const size_t stored =
	    libdeflate_deflate_compress(zip->compressor, data, (size_t)bytes, packed, bound);
	int status = 0;
	if (zip->at + (int64_t)stored > LARGEST)
		status = too_large(error);
	else
		write_member(zip, name, libdeflate_crc32(0, data, (size_t)bytes), packed, stored, bytes);
	free(packed);
	return status;
}

int smalti_zip_finish(struct smalti_zip *zip, struct smalti_error *error)
{
	int status = 0;
	if (fflush(zip->directory) || ferror(zip->directory))
		status = smalti_fail(error, SMALTI_ENOMEM, "out of memory for a zip archive's directory");
	else if (zip->at + (int64_t)zip->length > LARGEST)
		status = too_large(error);
	if (status == 0) {
		fwrite(zip->entries, 1, zip->length, zip->stream);
		put(zip->stream, END, 4);
		put(zip->stream, 0, 4); /* this disk, and that of the directory */
		put(zip->stream, (uint64_t)zip->count, 2);
		put(zip->stream, (uint64_t)zip->count, 2);
		put(zip->stream, zip->length, 4);
		put(zip->stream, (uint64_t)zip->at, 4);
		put(zip->stream, 0, 2); /* comment */
	}
	smalti_zip_discard(zip);
	return status;
}

void smalti_zip_discard(struct smalti_zip *zip)
{
	if (!zip)
		return;
	libdeflate_free_compressor(zip->compressor);
	if (zip->directory)
		fclose(zip->directory);
	free(zip->entries);
	free(zip);
}
