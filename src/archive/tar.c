/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar.h"
#include "base/file.h"

/* The most bytes of an extended header, and the most headers of a member. */
enum { EXTENSION_LIMIT = 1 << 20, EXTENSIONS_MAX = 16 };

int smalti_tar_read(int file, int64_t offset, int64_t bytes, void *to, struct smalti_error *error)
{
	const int64_t got = smalti_read_at(file, to, bytes, offset);
	if (got < 0)
		return smalti_fail_errno(error, "cannot be read");
	return got == bytes
		   ? 0
		   : smalti_fail(error, SMALTI_EFORMAT, "cut short at byte %lld", (long long)(offset + got));
}

/* Reads octal digits after blanks, or big-endian bytes after 0x80. -1: neither, or past 2^56. */
static int64_t read_number(const char *field, int length)
{
	int64_t value = 0;
	int i = 0;
	if (field[0] == (char)0x80) {
		for (i = 1; i < length; i++) {
			if (value >> 48)
				return -1;
			value = value << 8 | (unsigned char)field[i];
		}
		return value;
	}
	while (i < length && field[i] == ' ')
		i++;
	for (; i < length && field[i] >= '0' && field[i] <= '7'; i++)
		value = value << 3 | (field[i] - '0');
	return i == length || field[i] == ' ' || field[i] == '\0' ? value : -1;
}

int64_t smalti_tar_sum(const struct smalti_tar_header *header, bool with_signs)
{
	const int first = offsetof(struct smalti_tar_header, sum), count = sizeof(header->sum);
	const char *bytes = (const char *)header;
	int64_t sum = count * ' ';
	for (int i = 0; i < SMALTI_TAR_BLOCK; i++)
		if (i < first || i >= first + count)
			sum += with_signs ? (signed char)bytes[i] : (unsigned char)bytes[i];
	return sum;
}

bool smalti_tar_is_header(const struct smalti_tar_header *header)
{
	const int64_t told = read_number(header->sum, sizeof(header->sum));
	return header->name[0] &&
	       (told == smalti_tar_sum(header, false) || told == smalti_tar_sum(header, true));
}

static bool is_zero(const struct smalti_tar_header *header)
{
	static const struct smalti_tar_header zeros;
	return memcmp(header, &zeros, sizeof(zeros)) == 0;
}

/* Values of extended headers for the next member. */
struct extension {
	char *name;
	int64_t bytes; /* -1: nothing */
};

static int set_name(struct extension *extension, const char *name, size_t length, struct smalti_error *error)
{
	free(extension->name);
	extension->name = smalti_format(error, "%.*s", (int)length, name);
	return extension->name ? 0 : -1;
}

/* Reads records "LENGTH KEY=VALUE\n"; the length counts the whole record. */
static int read_pax(const char *text, size_t length, struct extension *extension, struct smalti_error *error)
{
	for (size_t at = 0; at < length;) {
		char *end;
		const unsigned long record = strtoul(text + at, &end, 10);
		const size_t digits = (size_t)(end - text) - at;
		if (*end != ' ' || record > length - at || record < digits + 2 ||
		    text[at + record - 1] != '\n')
			return smalti_fail(error, SMALTI_EFORMAT, "a damaged pax header");
		const char *key = end + 1, *stop = text + at + record - 1;
		const size_t room = (size_t)(stop - key);
		if (room >= 5 && memcmp(key, "path=", 5) == 0 &&
		    set_name(extension, key + 5, room - 5, error) < 0)
			return -1;
		if (room >= 5 && memcmp(key, "size=", 5) == 0) {
			const long long bytes = strtoll(key + 5, &end, 10);
			if (end != stop || bytes < 0)
				return smalti_fail(error, SMALTI_EFORMAT, "a damaged size in a pax header");
			extension->bytes = bytes;
		}
		if (room >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "a sparse file in a tar is not read; pack it without --sparse");
		at += record;
	}
	return 0;
}

static int read_extension(int file, char type, const struct smalti_tar_member *member,
			  struct extension *extension, struct smalti_error *error)
{
	if (member->bytes > EXTENSION_LIMIT)
		return smalti_fail(error, SMALTI_EFORMAT, "an extended header of %lld bytes",
				   (long long)member->bytes);
	SCOPED(free) char *text = smalti_calloc(member->bytes + 1, 1, error);
	if (!text)
		return -1;
	int status = smalti_tar_read(file, member->offset, member->bytes, text, error);
	if (status == 0)
		status = type == 'x' ? read_pax(text, (size_t)member->bytes, extension, error)
				     : set_name(extension, text, strlen(text), error);
	return status;
}

static int set_member_name(const struct smalti_tar_header *header, const struct extension *extension,
			   struct smalti_tar_member *member, struct smalti_error *error)
{
	char joined[sizeof(header->name) + sizeof(header->prefix) + 2];
	const char *name = extension->name;
	if (!name) {
		const bool prefix = memcmp(header->magic, "ustar", 6) == 0 && header->prefix[0];
		snprintf(joined, sizeof(joined), "%.*s%s%.*s", prefix ? (int)sizeof(header->prefix) : 0,
			 header->prefix, prefix ? "/" : "", (int)sizeof(header->name), header->name);
		name = joined;
	}
	while (name[0] == '.' && name[1] == '/')
		name += 2;
	const size_t length = strlen(name);
	if (length > SMALTI_TAR_NAME_BYTES)
		return smalti_fail(error, SMALTI_EFORMAT, "a name of %zu bytes, at most %d were expected",
				   length, SMALTI_TAR_NAME_BYTES);
	memcpy(member->name, name, length + 1);
	return 0;
}

/* Reads the header at `at`: its type; 0 at the end; -1. */
static int read_header(int file, int64_t size, int64_t at, struct smalti_tar_header *header,
		       struct smalti_tar_member *member, struct smalti_error *error)
{
	if (at == size)
		return 0;
	if (smalti_tar_read(file, at, sizeof(*header), header, error) < 0)
		return -1;
	if (is_zero(header))
		return 0;
	member->bytes = read_number(header->size, sizeof(header->size));
	member->offset = at + SMALTI_TAR_BLOCK;
	if (!smalti_tar_is_header(header) || member->bytes < 0)
		return smalti_fail(error, SMALTI_EFORMAT, "no good header at byte %lld", (long long)at);
	return header->type ? (unsigned char)header->type : '0';
}

/* Checks that the content is in the archive; finds the next header. */
static int place(int64_t size, struct smalti_tar_member *member, struct smalti_error *error)
{
	if (member->bytes > size - member->offset)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "cut short: a member of %lld bytes begins at byte %lld of %lld",
				   (long long)member->bytes, (long long)member->offset, (long long)size);
	const int64_t end = member->offset + member->bytes;
	member->next = smalti_min(smalti_round_up(end, SMALTI_TAR_BLOCK), size);
	return 0;
}

static int finish_member(int type, const struct smalti_tar_header *header, int64_t size,
			 const struct extension *extension, struct smalti_tar_member *member,
			 struct smalti_error *error)
{
	if (set_member_name(header, extension, member, error) < 0)
		return -1;
	if (type == 'S')
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "a sparse file in a tar is not read; pack it without --sparse");
	member->regular = type == '0' || type == '7';
	if (extension->bytes >= 0 && member->regular)
		member->bytes = extension->bytes;
	if (type >= '1' && type <= '6') /* links, devices, directories have no content, despite their size */
		member->bytes = 0;
	return place(size, member, error) < 0 ? -1 : 1;
}

static int read_member(int file, int64_t size, int64_t at, struct extension *extension,
		       struct smalti_tar_member *member, struct smalti_error *error)
{
	struct smalti_tar_header header;
	for (int extensions = 0; extensions <= EXTENSIONS_MAX; extensions++) {
		const int type = read_header(file, size, at, &header, member, error);
		if (type <= 0)
			return type;
		if (type != 'x' && type != 'L' && type != 'g' && type != 'K')
			return finish_member(type, &header, size, extension, member, error);
		if (place(size, member, error) < 0 ||
		    ((type == 'x' || type == 'L') &&
		     read_extension(file, (char)type, member, extension, error) < 0))
			return -1;
		at = member->next;
	}
	return smalti_fail(error, SMALTI_EFORMAT, "extended headers one after the other, at byte %lld",
			   (long long)at);
}

int smalti_tar_member(int file, int64_t size, int64_t at, struct smalti_tar_member *member,
		      struct smalti_error *error)
{
	struct extension extension = {.bytes = -1};
	member->name[0] = '\0';
	member->regular = false;
	const int status = read_member(file, size, at, &extension, member, error);
	free(extension.name);
	return status;
}
