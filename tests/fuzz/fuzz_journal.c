/* SPDX-License-Identifier: Apache-2.0 */
#include "store/digest.h"
#include "store/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[64], path[96];

static void clean(void)
{
	unlink(path);
	rmdir(directory);
}

/* A line that begins with '#' gets the checksum that it should have. */
static long write_journal(const char *data, size_t size)
{
	FILE *stream = fopen(path, "wb");
	if (!stream)
		abort();
	while (size > 0) {
		const char *end = memchr(data, '\n', size);
		const size_t length = end ? (size_t)(end - data) + 1 : size;
		if (data[0] == '#') {
			char digest[SMALTI_HEX_DIGITS + 1];
			smalti_hex_print(XXH3_64bits(data + 1, length - 1 - (end != NULL)), digest);
			fprintf(stream, "%s ", digest);
			fwrite(data + 1, 1, length - 1, stream);
		} else {
			fwrite(data, 1, length, stream);
		}
		data += length;
		size -= length;
	}
	const long written = ftell(stream);
	fclose(stream);
	return written;
}

static void count(void *user, int64_t line, const char *what)
{
	(void)line;
	++*(int64_t *)user;
	if (!*what)
		abort();
}

/* Whatever the lines, those that hold are in order and none is there twice; without a watch it is the same,
 * or one of them is named. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!path[0]) {
		snprintf(directory, sizeof(directory), "%s/smalti-fuzz-XXXXXX",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		if (!mkdtemp(directory))
			abort();
		snprintf(path, sizeof(path), "%s/journal", directory);
		atexit(clean);
	}
	const long written = write_journal((const char *)data, size);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_journal journal = {0}, strict = {0};
	int64_t damaged = 0;
	const struct smalti_journal_watch on_progress = {count, &damaged};
	if (smalti_journal_read(&journal, directory, &on_progress, &error) ||
	    journal.bytes + journal.torn != written || journal.count + damaged > journal.lines)
		abort();
	for (int64_t i = 0; i < journal.count; i++) {
		const struct smalti_shard_id *id = &journal.entries[i].id;
		if (id->first < 0 || id->end <= id->first || journal.entries[i].drop ||
		    (i > 0 && id->first < journal.entries[i - 1].id.end))
			abort();
	}
	if ((smalti_journal_read(&strict, directory, NULL, &error) == 0) != (damaged == 0) ||
	    (damaged == 0 && strict.count != journal.count))
		abort();
	smalti_journal_free(&journal);
	smalti_journal_free(&strict);
	return 0;
}
