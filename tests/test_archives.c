/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar_writer.h"
#include "archive/zip_writer.h"
#include "base/file.h"
#include "checkpoint/npy.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

static unsigned char *read_file(const char *path, size_t *length)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	unsigned char *bytes = (unsigned char *)smalti_file_read(path, 1 << 24, length, &error);
	SUCCEEDS(bytes ? 0 : -1, &error, path);
	return bytes;
}

static int64_t get(const unsigned char *at, int width)
{
	int64_t value = 0;
	for (int i = width - 1; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

/* Members of all kinds: empty, short and long, hard and easy to compress. */
static const struct member {
	const char *name;
	int64_t bytes;
	bool noise;
} members[] = {
    {"a.npy", 300000, true},   {"empty", 0, false},         {"b", 1, true},
    {"zeros", 1000000, false}, {"some zeros", 4096, false},
};

static unsigned char *content_of(const struct member *member)
{
	unsigned char *content = calloc((size_t)member->bytes + 1, 1);
	uint64_t state = 1;
	for (int64_t i = 0; i < member->bytes && member->noise; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		content[i] = (unsigned char)(state >> 56);
	}
	return content;
}

static void write_zip(const char *path)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	FILE *stream = fopen(path, "wb");
	struct smalti_zip *zip = smalti_zip_begin(stream, &error);
	SUCCEEDS(zip ? 0 : -1, &error, "begin");
	for (size_t i = 0; i < COUNT(members); i++) {
		unsigned char *content = content_of(&members[i]);
		SUCCEEDS(smalti_zip_add(zip, members[i].name, content, members[i].bytes, &error), &error,
			 members[i].name);
		free(content);
	}
	SUCCEEDS(smalti_zip_finish(zip, &error), &error, "finish");
	fclose(stream);
}

static bool inflates_to(const unsigned char *data, int64_t bytes, const struct member *member)
{
	unsigned char *content = content_of(member), *found = malloc((size_t)member->bytes + 1);
	z_stream inflater = {.next_in = (unsigned char *)(uintptr_t)data,
			     .avail_in = (uInt)bytes,
			     .next_out = found,
			     .avail_out = (uInt)member->bytes + 1};
	bool same = false;
	if (inflateInit2(&inflater, -MAX_WBITS) == Z_OK) {
		same = inflate(&inflater, Z_FINISH) == Z_STREAM_END &&
		       (int64_t)inflater.total_out == member->bytes && inflater.avail_in == 0 &&
		       memcmp(found, content, (size_t)member->bytes) == 0;
		inflateEnd(&inflater);
	}
	free(content);
	free(found);
	return same;
}

/* Local header, data and directory entry of a member agree with it. */
static const unsigned char *check_entry(const unsigned char *file, const unsigned char *entry,
					const struct member *member)
{
	unsigned char *content = content_of(member);
	const int64_t name = (int64_t)strlen(member->name), offset = get(entry + 42, 4);
	const unsigned char *local = file + offset;
	CHECK(get(entry, 4) == 0x02014b50 && get(local, 4) == 0x04034b50, member->name);
	CHECK(memcmp(entry + 6, local + 4, 26) == 0, member->name); /* version ... lengths */
	CHECK(get(entry + 10, 2) == 8, member->name);
	CHECK(get(entry + 24, 4) == member->bytes, member->name);
	CHECK(get(entry + 16, 4) == (int64_t)crc32(0, content, (uInt)member->bytes), member->name);
	CHECK(get(entry + 28, 2) == name && memcmp(entry + 46, member->name, (size_t)name) == 0,
	      member->name);
	CHECK(memcmp(local + 30, member->name, (size_t)name) == 0, member->name);
	CHECK(inflates_to(local + 30 + name, get(entry + 20, 4), member), member->name);
	free(content);
	return entry + 46 + name;
}

static void zip_members_come_back(void)
{
	const char *path = test_file("a.zip");
	size_t length = 0;
	write_zip(path);
	unsigned char *file = read_file(path, &length);
	const unsigned char *end = file + length - 22, *entry = file + get(end + 16, 4);
	CHECK(get(end, 4) == 0x06054b50 && get(end + 8, 2) == COUNT(members) &&
		  get(end + 10, 2) == COUNT(members) && get(end + 20, 2) == 0,
	      "end record");
	for (size_t i = 0; i < COUNT(members); i++)
		entry = check_entry(file, entry, &members[i]);
	CHECK(entry == end && get(end + 12, 4) == end - (file + get(end + 16, 4)), "directory");
	CHECK(length < 320000, "zeros are compressed");
	free(file);
}

static void run_python(const char *script, const char *path)
{
	char command[2048];
	snprintf(command, sizeof(command),
		 "command -v python3 >/dev/null || exit 0\npython3 - '%s' <<'END'\n%s\nEND", path, script);
	fflush(stdout);
	CHECK(system(command) == 0, script);
}

/* A field's largest value says that a zip64 record has it: that is written then, and only then. */
static void many_members_need_zip64(void)
{
	static const int counts[] = {65534, 65535, 70000};
	for (int c = 0; c < COUNT(counts); c++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = test_file("many.zip");
		FILE *stream = fopen(path, "wb");
		struct smalti_zip *zip = smalti_zip_begin(stream, &error);
		int status = 0;
		for (int i = 0; i < counts[c] && status == 0; i++) {
			char name[16];
			snprintf(name, sizeof(name), "%d", i);
			status = smalti_zip_add(zip, name, name, (int64_t)strlen(name), &error);
		}
		SUCCEEDS(status, &error, "add");
		SUCCEEDS(smalti_zip_finish(zip, &error), &error, "finish");
		fclose(stream);
		size_t length = 0;
		unsigned char *file = read_file(path, &length);
		CHECK((get(file + length - 42, 4) == 0x07064b50) == (counts[c] > 65534), "zip64 records");
		CHECK(get(file + length - 12, 2) == (counts[c] > 65534 ? 65535 : counts[c]), "count");
		free(file);
		run_python("import sys, zipfile\n"
			   "names = zipfile.ZipFile(sys.argv[1])\n"
			   "assert len(names.namelist()) >= 65534\n"
			   "assert all(names.read(n) == n.encode() for n in names.namelist()[::997])",
			   path);
	}
}

/* A member of more than 4 GiB, of pages that are never there, behind 5 GiB that are a hole in the file. */
static void sizes_and_places_past_4_gib_need_zip64(void)
{
	const size_t large = (size_t)(INT64_C(1) << 32) + 5;
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("large.zip");
	void *zeros = mmap(NULL, large, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	FILE *stream = fopen(path, "wb");
	CU_ASSERT_FATAL(zeros != MAP_FAILED && fseeko(stream, INT64_C(5) << 30, SEEK_SET) == 0);
	struct smalti_zip *zip = smalti_zip_begin(stream, &error);
	SUCCEEDS(smalti_zip_add(zip, "first", "1", 1, &error), &error, "first");
	SUCCEEDS(smalti_zip_add(zip, "large", zeros, (int64_t)large, &error), &error, "large");
	SUCCEEDS(smalti_zip_add(zip, "last", "23", 2, &error), &error, "last");
	SUCCEEDS(smalti_zip_finish(zip, &error), &error, "finish");
	fclose(stream);
	munmap(zeros, large);
	run_python("import sys, zipfile\n"
		   "archive = zipfile.ZipFile(sys.argv[1])\n"
		   "first, large, last = archive.infolist()\n"
		   "assert first.header_offset == 5 << 30 and large.file_size == (4 << 30) + 5\n"
		   "assert archive.read(first) == b'1' and archive.read(last) == b'23'\n"
		   "with archive.open(large) as member:\n"
		   "    assert not member.read(1 << 24).strip(b'\\0')",
		   path);
}

static int64_t octal(const unsigned char *at)
{
	return strtoll((const char *)at, NULL, 8);
}

static void check_sum(const unsigned char *header, const char *what)
{
	int64_t sum = 0;
	for (int i = 0; i < 512; i++)
		sum += i >= 148 && i < 156 ? ' ' : header[i];
	CHECK(octal(header + 148) == sum && memcmp(header + 257, "ustar\00000", 8) == 0, what);
}

static char *repeat(const char *word, int count, const char *end)
{
	char *text = calloc(strlen(word) * (size_t)count + strlen(end) + 1, 1);
	for (int i = 0; i < count; i++)
		strcat(text, word);
	return strcat(text, end);
}

/* Names at the edges: of 100 bytes plain, longer or with letters of two bytes by a pax header, whose length
 * counts its own digits. */
static void tar_members_come_back(void)
{
	char *names[] = {repeat("a", 1, ".json"),   repeat("b", 100, ""), repeat("c", 101, ""),
			 repeat("\xc3\xa9", 1, ""), repeat("d", 90, ""),  repeat("e", 988, "f"),
			 repeat("e", 987, "f"),     repeat("g", 9990, "")};
	const int64_t sizes[] = {0, 1, 512, 513, 511, 1024, 7, 3};
	char content[1024];
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("a.tar");
	struct smalti_tar_writer tar = {.stream = fopen(path, "wb")};
	memset(content, 'x', sizeof(content));
	for (size_t i = 0; i < COUNT(names); i++) {
		SUCCEEDS(smalti_tar_add(&tar, names[i], sizes[i], &error), &error, names[i]);
		smalti_tar_write(&tar, content, sizes[i]);
	}
	FAILS(smalti_tar_add(&tar, "large", INT64_C(1) << 33, &error), &error, SMALTI_EUNSUPPORTED, "large",
	      "large", "8 GiB");
	smalti_tar_finish(&tar);
	fclose(tar.stream);

	size_t length = 0;
	unsigned char *file = read_file(path, &length);
	const unsigned char *at = file;
	CHECK(length % 10240 == 0 && (int64_t)length == tar.bytes, "whole records");
	for (size_t i = 0; i < COUNT(names); i++) {
		char pax[10100];
		const bool plain = strlen(names[i]) <= 100 && names[i][0] != '\xc3';
		check_sum(at, names[i]);
		CHECK(at[156] == (plain ? '0' : 'x'), names[i]);
		if (!plain) {
			const int64_t size = octal(at + 124);
			snprintf(pax, sizeof(pax), "%d path=%s\n", (int)size, names[i]);
			CHECK((int64_t)strlen(pax) == size && memcmp(at + 512, pax, (size_t)size) == 0,
			      names[i]);
			at += 512 + (size + 511) / 512 * 512;
			check_sum(at, names[i]);
		} else {
			CHECK(strncmp((const char *)at, names[i], 100) == 0, names[i]);
		}
		CHECK(octal(at + 124) == sizes[i] && memcmp(at + 512, content, (size_t)sizes[i]) == 0,
		      names[i]);
		at += 512 + (sizes[i] + 511) / 512 * 512;
		free(names[i]);
	}
	bool zeros = true;
	for (const unsigned char *end = file + length; at < end; at++)
		zeros = zeros && *at == 0;
	CHECK(zeros, "the rest is zeros");
	free(file);
}

static void npy_headers_are_as_numpy_writes_them(void)
{
	static const struct {
		const char *descr;
		int rank;
		int64_t shape[SMALTI_MAX_RANK];
		int64_t length;
		const char *text;
	} cases[] = {
	    {"<f4", 3, {8, 32, 32}, 128, "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 32, 32), }"},
	    {"<i2", 2, {1, 300}, 128, "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 300), }"},
	    {"<f2", 1, {7}, 128, "{'descr': '<f2', 'fortran_order': False, 'shape': (7,), }"},
	    {"<f4", 0, {0}, 128, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"},
	    {"<f2",
	     8,
	     {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
	     256,
	     "{'descr': '<f2', 'fortran_order': False, 'shape': (9223372036854775807, 92"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char header[SMALTI_NPY_HEADER];
		const int64_t length =
		    smalti_npy_header(cases[i].descr, cases[i].rank, cases[i].shape, header);
		const size_t text = strlen(cases[i].text);
		CHECK(length == cases[i].length, cases[i].text);
		CHECK(memcmp(header, "\x93NUMPY\1\0", 8) == 0, cases[i].text);
		CHECK(get((unsigned char *)header + 8, 2) == length - 10, cases[i].text);
		CHECK(memcmp(header + 10, cases[i].text, text) == 0, cases[i].text);
		CHECK(header[length - 1] == '\n', cases[i].text);
		for (int64_t j = 10 + (int64_t)text; cases[i].rank < 8 && j < length - 1; j++)
			CHECK(header[j] == ' ', cases[i].text);
	}
}

static const struct test tests[] = {
    {"zip members come back", zip_members_come_back},
    {"many members need zip64", many_members_need_zip64},
    {"sizes and places past 4 GiB need zip64", sizes_and_places_past_4_gib_need_zip64},
    {"tar members come back", tar_members_come_back},
    {"npy headers are as NumPy writes them", npy_headers_are_as_numpy_writes_them},
};

TEST_MAIN("archives", tests)
