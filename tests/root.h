/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The directory that a test lets be made below test_scratch(), and the files in it by their names. */

extern char root[4096];

/* Another one, which is not there yet. */
void root_fresh(void);
/* The path of a file in it, good until the fourth next call. */
const char *root_at(const char *name);
bool root_has(const char *name);
void root_put(const char *name, const char *data, size_t size);
/* Free with free(). */
char *root_get(const char *name, size_t *size);
/* Entries of a directory in it ("": itself) whose names hold the word. */
int root_count(const char *directory, const char *word);
int64_t root_lines(const char *name);
