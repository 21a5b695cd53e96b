/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/zip_writer.h"

#include <libdeflate.h>

/* Fast: values of features hardly shrink, padding does at any level. */
enum { LEVEL = 1, NAME = 65535 };

/* The largest values of the fields of 2 and 4 bytes; one more means "see the zip64 record". */
static const int64_t MEMBERS = UINT16_MAX - 1, LARGEST = UINT32_MAX - 1;

/* 1 January 1980, the earliest date: equal features make equal files. */
enum {
	DATE = 1 << 5 | 1,
	DEFLATE_VERSION = 20,
	ZIP64_VERSION = 45,
	DEFLATED = 8,
	UTF8 = 0x800,
	LOCAL = 0x04034b50,
	ENTRY = 0x02014b50,
	END64 = 0x06064b50,
	END64_BYTES = 44, /* behind its length */
	LOCATOR64 = 0x07064b50,
	END = 0x06054b50,
};

struct smalti_zip {
	FILE *stream;
	int64_t at, count; /* bytes before the next member; members */
	FILE *directory;   /* in memory */
	char *entries;
	size_t length;
	struct libdeflate_compressor *compressor;
};

struct member {
	const char *name;
	uint32_t crc;
	int64_t bytes, stored, at;
};

/* Writes a little-endian value. */
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
	zip->at = ftello(stream);
	zip->directory = open_memstream(&zip->entries, &zip->length);
	zip->compressor = libdeflate_alloc_compressor(LEVEL);
	if (zip->at < 0)
		smalti_fail_errno(error, "no place in a file for a zip archive");
	else if (!zip->directory || !zip->compressor)
		smalti_fail(error, SMALTI_ENOMEM, "out of memory for a zip archive");
	else
		return zip;
	smalti_zip_discard(zip);
	return NULL;
}

/* Writes the fields that the local header and the directory's entry share; the zip64 field has `wide` values.
 */
static void put_member(FILE *to, const struct member *m, int wide)
{
	put(to, wide ? ZIP64_VERSION : DEFLATE_VERSION, 2);
	put(to, UTF8, 2);
	put(to, DEFLATED, 2);
	put(to, (uint64_t)DATE << 16, 4); /* time and date */
	put(to, m->crc, 4);
	put(to, wide ? UINT32_MAX : (uint64_t)m->stored, 4);
	put(to, wide ? UINT32_MAX : (uint64_t)m->bytes, 4);
	put(to, strlen(m->name), 2);
	put(to, wide ? 4 + 8 * (uint64_t)wide : 0, 2); /* extra fields */
}

static void put_name(FILE *to, const struct member *m, int wide)
{
	const int64_t values[] = {m->bytes, m->stored, m->at};
	fputs(m->name, to);
	if (wide) {
		put(to, 1, 2); /* the zip64 field */
		put(to, 8 * (uint64_t)wide, 2);
	}
	for (int i = 0; i < wide; i++)
		put(to, (uint64_t)values[i], 8);
}

static void write_member(struct smalti_zip *zip, const struct member *m, const void *packed)
{
	const int sizes = m->bytes > LARGEST || m->stored > LARGEST ? 2 : 0;
	const int all = sizes || m->at > LARGEST ? 3 : 0;
	put(zip->stream, LOCAL, 4);
	put_member(zip->stream, m, sizes);
	put_name(zip->stream, m, sizes);
	fwrite(packed, 1, (size_t)m->stored, zip->stream);
	put(zip->directory, ENTRY, 4);
	put(zip->directory, all ? ZIP64_VERSION : DEFLATE_VERSION, 2); /* made by */
	put_member(zip->directory, m, all);
	put(zip->directory, 0, 6); /* comment, disk, internal attributes */
	put(zip->directory, 0, 4); /* external attributes */
	put(zip->directory, all ? UINT32_MAX : (uint64_t)m->at, 4);
	put_name(zip->directory, m, all);
	zip->at += 30 + (int64_t)strlen(m->name) + (sizes ? 20 : 0) + m->stored;
	zip->count++;
}

int smalti_zip_add(struct smalti_zip *zip, const char *name, const void *data, int64_t bytes,
		   struct smalti_error *error)
{
	if (strlen(name) > NAME)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%.40s...: a name in a zip has %d bytes at most", name, NAME);
	const size_t bound = libdeflate_deflate_compress_bound(zip->compressor, (size_t)bytes);
	SCOPED(free) char *packed = smalti_aligned_alloc((int64_t)bound, 1, error);
	if (!packed)
		return -1;
	const struct member member = {
	    .name = name,
	    .crc = libdeflate_crc32(0, data, (size_t)bytes),
	    .bytes = bytes,
	    .stored =
		(int64_t)libdeflate_deflate_compress(zip->compressor, data, (size_t)bytes, packed, bound),
	    .at = zip->at,
	};
	write_member(zip, &member, packed);
	return 0;
}

/* Writes the zip64 record, for values that do not fit into the last record, and its locator. */
static void write_end64(struct smalti_zip *zip)
{
	FILE *to = zip->stream;
	put(to, END64, 4);
	put(to, END64_BYTES, 8);
	put(to, ZIP64_VERSION, 2); /* made by */
	put(to, ZIP64_VERSION, 2);
	put(to, 0, 8); /* this disk, the directory's disk */
	put(to, (uint64_t)zip->count, 8);
	put(to, (uint64_t)zip->count, 8);
	put(to, zip->length, 8);
	put(to, (uint64_t)zip->at, 8);
	put(to, LOCATOR64, 4);
	put(to, 0, 4); /* the record's disk */
	put(to, (uint64_t)zip->at + zip->length, 8);
	put(to, 1, 4); /* disks */
}

static void write_end(struct smalti_zip *zip)
{
	const bool wide = zip->count > MEMBERS || zip->at > LARGEST || (int64_t)zip->length > LARGEST;
	FILE *to = zip->stream;
	fwrite(zip->entries, 1, zip->length, to);
	if (wide)
		write_end64(zip);
	put(to, END, 4);
	put(to, 0, 4); /* this disk, the directory's disk */
	put(to, wide ? UINT16_MAX : (uint64_t)zip->count, 2);
	put(to, wide ? UINT16_MAX : (uint64_t)zip->count, 2);
	put(to, wide ? UINT32_MAX : zip->length, 4);
	put(to, wide ? UINT32_MAX : (uint64_t)zip->at, 4);
	put(to, 0, 2); /* comment */
}

int smalti_zip_finish(struct smalti_zip *zip, struct smalti_error *error)
{
	int status = 0;
	if (fflush(zip->directory) || ferror(zip->directory))
		status = smalti_fail(error, SMALTI_ENOMEM, "out of memory for a zip archive's directory");
	else
		write_end(zip);
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
