/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zip_writer.h"
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Fast: values of features hardly shrink, padding does at any level. */
enum { LEVEL = 1, CHUNK = 1 << 16, MEMBERS = 65534, NAME = 65535 };

static const int64_t LARGEST = UINT32_MAX - 1; /* 2^32 - 1 says "see the zip64 record" */

/* 1 January 1980, the earliest there is: the same features make the same file. */
enum {
	DATE = 1 << 5 | 1,
	DEFLATE_VERSION = 20,
	LOCAL = 0x04034b50,
	ENTRY = 0x02014b50,
	END = 0x06054b50,
	UTF8 = 0x800
};

struct member {
	char *name;
	enum smalti_zip_method method;
	uint32_t crc;
	int64_t offset, stored, bytes;
};

struct smalti_zip {
	FILE *stream;
	int64_t start, at; /* of the archive in the stream; bytes written */
	struct member *members;
	int count, capacity;
	bool open; /* the last member is being written */
	z_stream deflater;
	bool has_deflater;
	unsigned char chunk[CHUNK];
};

/* Little-endian values one after the other: what zip is made of. */
struct record {
	unsigned char bytes[64];
	int length;
};

static void put(struct record *record, int64_t value, int width)
{
	for (int i = 0; i < width; i++)
		record->bytes[record->length++] = (unsigned char)(value >> (8 * i));
}

static void write_bytes(struct smalti_zip *zip, const void *data, int64_t bytes)
{
	fwrite(data, 1, (size_t)bytes, zip->stream);
	zip->at += bytes;
}

/* What the local header and the directory's entry have in common. */
static void put_member(struct record *record, const struct member *member)
{
	put(record, UTF8, 2);
	put(record, member->method, 2);
	put(record, 0, 2); /* time */
	put(record, DATE, 2);
	put(record, member->crc, 4);
	put(record, member->stored, 4);
	put(record, member->bytes, 4);
	put(record, (int64_t)strlen(member->name), 2);
	put(record, 0, 2); /* extra field */
}

static void make_local(struct record *record, const struct member *member)
{
	*record = (struct record){.length = 0};
	put(record, LOCAL, 4);
	put(record, DEFLATE_VERSION, 2);
	put_member(record, member);
}

struct smalti_zip *smalti_zip_begin(FILE *stream, struct smalti_error *error)
{
	struct smalti_zip *zip = smalti_calloc(1, sizeof(*zip), error);
	if (!zip)
		return NULL;
	zip->stream = stream;
	zip->start = ftello(stream);
	if (deflateInit2(&zip->deflater, LEVEL, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK) {
		zip->has_deflater = true;
		return zip;
	}
	smalti_fail(error, SMALTI_ENOMEM, "out of memory for compressing");
	smalti_zip_discard(zip);
	return NULL;
}

static int too_large(struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EUNSUPPORTED, "a zip archive has room for 4 GiB and 65,534 members");
}

/* Feeds the deflater and writes what it has made. */
static int run_deflater(struct smalti_zip *zip, int flush, struct smalti_error *error)
{
	struct member *member = &zip->members[zip->count - 1];
	do {
		zip->deflater.next_out = zip->chunk;
		zip->deflater.avail_out = CHUNK;
		if (deflate(&zip->deflater, flush) == Z_STREAM_ERROR)
			return smalti_fail(error, SMALTI_EIO, "zlib: %s",
					   zip->deflater.msg ? zip->deflater.msg : "cannot compress");
		const int64_t made = CHUNK - (int64_t)zip->deflater.avail_out;
		write_bytes(zip, zip->chunk, made);
		member->stored += made;
	} while (zip->deflater.avail_out == 0);
	return member->stored > LARGEST ? too_large(error) : 0;
}

/* Its sizes and checksum are known now: they go where zeros are. */
static int end_member(struct smalti_zip *zip, struct smalti_error *error)
{
	if (!zip->open)
		return 0;
	struct member *member = &zip->members[zip->count - 1];
	struct record record;
	zip->open = false;
	if (member->method == SMALTI_ZIP_DEFLATED && run_deflater(zip, Z_FINISH, error))
		return -1;
	make_local(&record, member);
	if (fseeko(zip->stream, (off_t)(zip->start + member->offset), SEEK_SET))
		return smalti_fail_errno(error, "a zip archive cannot be positioned");
	fwrite(record.bytes, 1, (size_t)record.length, zip->stream);
	if (fseeko(zip->stream, (off_t)(zip->start + zip->at), SEEK_SET))
		return smalti_fail_errno(error, "a zip archive cannot be positioned");
	return 0;
}

static struct member *add_member(struct smalti_zip *zip, const char *name, struct smalti_error *error)
{
	if (zip->count == zip->capacity) {
		const int capacity = zip->capacity ? 2 * zip->capacity : 4;
		struct member *grown = realloc(zip->members, (size_t)capacity * sizeof(*grown));
		if (!grown) {
			smalti_fail(error, SMALTI_ENOMEM, "out of memory for a zip archive's directory");
			return NULL;
		}
		zip->members = grown;
		zip->capacity = capacity;
	}
	struct member *member = &zip->members[zip->count];
	*member = (struct member){.name = smalti_format(error, "%s", name), .offset = zip->at};
	if (!member->name)
		return NULL;
	zip->count++;
	return member;
}

int smalti_zip_member(struct smalti_zip *zip, const char *name, enum smalti_zip_method method,
		      struct smalti_error *error)
{
	if (end_member(zip, error))
		return -1;
	if (zip->count == MEMBERS || zip->at > LARGEST || strlen(name) > NAME)
		return too_large(error);
	struct member *member = add_member(zip, name, error);
	if (!member)
		return -1;
	struct record record;
	member->method = method;
	member->crc = (uint32_t)crc32(0, NULL, 0);
	make_local(&record, member);
	write_bytes(zip, record.bytes, record.length);
	write_bytes(zip, name, (int64_t)strlen(name));
	deflateReset(&zip->deflater);
	zip->open = true;
	return 0;
}

int smalti_zip_write(struct smalti_zip *zip, const void *data, int64_t bytes, struct smalti_error *error)
{
	struct member *member = &zip->members[zip->count - 1];
	const unsigned char *from = data;
	if (bytes > LARGEST - member->bytes)
		return too_large(error);
	while (bytes > 0) {
		const int64_t part = bytes < INT32_MAX ? bytes : INT32_MAX;
		member->crc = (uint32_t)crc32(member->crc, from, (uInt)part);
		member->bytes += part;
		zip->deflater.next_in = (unsigned char *)(uintptr_t)from; /* zlib does not write there */
		zip->deflater.avail_in = (uInt)part;
		if (member->method == SMALTI_ZIP_DEFLATED && run_deflater(zip, Z_NO_FLUSH, error))
			return -1;
		if (member->method == SMALTI_ZIP_STORED) {
			write_bytes(zip, from, part);
			member->stored += part;
		}
		from += part;
		bytes -= part;
	}
	return 0;
}

static void write_entry(struct smalti_zip *zip, const struct member *member)
{
	struct record record = {.length = 0};
	put(&record, ENTRY, 4);
	put(&record, DEFLATE_VERSION, 2); /* made by */
	put(&record, DEFLATE_VERSION, 2); /* needed */
	put_member(&record, member);
	put(&record, 0, 2); /* comment */
	put(&record, 0, 2); /* disk */
	put(&record, 0, 2); /* attributes, internal and external */
	put(&record, 0, 4);
	put(&record, member->offset, 4);
	write_bytes(zip, record.bytes, record.length);
	write_bytes(zip, member->name, (int64_t)strlen(member->name));
}

static int write_directory(struct smalti_zip *zip, struct smalti_error *error)
{
	const int64_t begin = zip->at;
	struct record record = {.length = 0};
	for (int i = 0; i < zip->count; i++)
		write_entry(zip, &zip->members[i]);
	if (zip->at > LARGEST)
		return too_large(error);
	put(&record, END, 4);
	put(&record, 0, 2); /* disk, and that of the directory */
	put(&record, 0, 2);
	put(&record, zip->count, 2); /* on this disk, and all */
	put(&record, zip->count, 2);
	put(&record, zip->at - begin, 4);
	put(&record, begin, 4);
	put(&record, 0, 2); /* comment */
	write_bytes(zip, record.bytes, record.length);
	return 0;
}

int smalti_zip_finish(struct smalti_zip *zip, struct smalti_error *error)
{
	const int status = end_member(zip, error) || write_directory(zip, error) ? -1 : 0;
	smalti_zip_discard(zip);
	return status;
}

void smalti_zip_discard(struct smalti_zip *zip)
{
	if (!zip)
		return;
	if (zip->has_deflater)
		deflateEnd(&zip->deflater);
	for (int i = 0; i < zip->count; i++)
		free(zip->members[i].name);
	free(zip->members);
	free(zip);
}
