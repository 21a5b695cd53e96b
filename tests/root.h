/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The directory of a test below test_scratch(), and its files by their names. */

extern char root[4096];

/* Chooses another one, which does not exist yet. */
void root_fresh(void);
/* Returns the path of a file in it, valid until the fourth next call. */
const char *root_at(const char *name);
bool root_has(const char *name);
void root_put(const char *name, const char *data, size_t size);
/* Returns its bytes for free(). */
char *root_get(const char *name, size_t *size);
/* Counts entries of a directory in it ("": itself) whose names contain the word. */
int root_count(const char *directory, const char *word);
int64_t root_lines(const char *name);
