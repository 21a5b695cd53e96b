/* SPDX-License-Identifier: Apache-2.0 */
#include "root.h"

#include "base/file.h"
#include "harness.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char root[4096];

void root_fresh(void)
{
	snprintf(root, sizeof(root), "%.4000s/out", test_scratch());
}

const char *root_at(const char *name)
{
	static char paths[4][8192];
	static int used;
	char *path = paths[used++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
	return path;
}

bool root_has(const char *name)
{
	return access(root_at(name), F_OK) == 0;
}

void root_put(const char *name, const char *text, size_t length)
{
	FILE *stream = fopen(root_at(name), "wb");
	if (!stream || fwrite(text, 1, length, stream) != length || fclose(stream))
		abort();
}

char *root_get(const char *name, size_t *length)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char *text = smalti_file_read(root_at(name), 1 << 24, length, &error);
	CHECK(text, error.message);
	return text ? text : strdup("");
}

int root_count(const char *directory, const char *word)
{
	int count = 0;
	DIR *entries = opendir(root_at(directory));
	for (const struct dirent *entry; entries && (entry = readdir(entries));)
		count +=
		    strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && strstr(entry->d_name, word);
	if (entries)
		closedir(entries);
	return count;
}

int64_t root_lines(const char *name)
{
	size_t length;
	char *text = root_get(name, &length);
	int64_t count = 0;
	for (const char *c = text; (c = strchr(c, '\n')); c++)
		count++;
	free(text);
	return count;
}
