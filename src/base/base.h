/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What nearly every file uses: standard headers, errors, checked allocation, and variables that are released
 * where their scope ends. */

#include "smalti/error.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts the items of an array, not of a pointer. */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Compares two names, or two structures that begin with one, for qsort() and bsearch(). */
static inline int smalti_by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Compares two doubles for qsort(). */
static inline int smalti_ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Fills `error` (which may be NULL) unless it already holds an earlier failure: the first cause is the
 * important one. Control characters in the text become '?', so that hostile names cannot break the line.
 * Always returns -1, for `return smalti_fail(...)`. */
int smalti_fail(struct smalti_error *error, enum smalti_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fails with the failure of another call, if it has one: returns -1, or 0 without one. */
int smalti_pass(struct smalti_error *error, const struct smalti_error *cause);

/* Fails after a system call: appends strerror(errno), which decides the code: SMALTI_ENOENT if nothing has
 * that name, SMALTI_ENOMEM, else SMALTI_EIO. */
int smalti_fail_errno(struct smalti_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Tells whether the failure lies in the input, so that reading it again would fail again: only this item
 * fails. Otherwise the machine failed (no memory, no descriptors, a missing disk): the work stops, and can
 * continue later. */
bool smalti_is_of_input(enum smalti_code code);

#ifdef __clang_analyzer__ /* tells the static analyser, which sees one file at a time, what they return */
#define smalti_fail(...)       (smalti_fail(__VA_ARGS__), -1)
#define smalti_fail_errno(...) (smalti_fail_errno(__VA_ARGS__), -1)
#endif

/* Begins a public function: its failure replaces what `error` held, since the caller may use one structure
 * for many calls. Not for functions that close: the failure before them is the important one. `error` is the
 * function's parameter. */
struct smalti_error_report {
	struct smalti_error *caller, own;
};
void smalti_error_report_end(struct smalti_error_report *report);
#define SMALTI_REPORT(error)                                                                                 \
	struct smalti_error_report report                                                                    \
	    __attribute__((cleanup(smalti_error_report_end))) = {(error), SMALTI_NO_ERROR};                  \
	(error) = &report.own

/* Puts `prefix: ` before an existing message. */
void smalti_error_prefix(struct smalti_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Check the arguments of public functions: 0, or -1 with SMALTI_EINVAL, which names `what`. */

/* Checks that it is not NULL and, for a text, not empty. */
int smalti_check_given(const void *pointer, const char *what, struct smalti_error *error);
int smalti_check_text(const char *text, const char *what, struct smalti_error *error);
/* Checks least <= value <= most. An enum has 0 and its last name. */
int smalti_check_range(int64_t value, int64_t min, int64_t max, const char *what, struct smalti_error *error);

/* Computes product *= factor; false on overflow (or a negative extent). */
bool smalti_multiply(int64_t *product, int64_t factor);

/* Computes product *= each of the extents; false on overflow (or a negative extent). Extents of zero are left
 * out of the check: the product of any of the others, in any order, fits. */
bool smalti_multiply_extents(int64_t *product, const int64_t *extents, int count);

/* Returns zeroed memory for count × size bytes, both checked; NULL with an error. Free with free(). */
void *smalti_calloc(int64_t count, int64_t size, struct smalti_error *error);

/* Makes room for one more item of `size` bytes after `count`. `items` is the address of the pointer to them,
 * which does not change on -1. Called before each item, from the first (NULL, 0) on; the new item is not
 * initialised. Free with free(). */
int smalti_grow(void *items, int64_t count, int64_t size, struct smalti_error *error);

/* Makes items[index] exist, where `items` is the address of a pointer to *count items; new items are zero. 0,
 * or -1 without memory (then nothing has changed). */
int smalti_grow_to(void *items, int64_t *count, int64_t index, int64_t size, struct smalti_error *error);

/* Returns uninitialised memory aligned to 64 bytes (a cache line and the widest vector). Free with free(). */
void *smalti_aligned_alloc(int64_t count, int64_t size, struct smalti_error *error);

/* Prints into new memory; NULL with an error. Free with free(). */
char *smalti_format(struct smalti_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends to a text in a buffer of `size` bytes, as far as there is room, with `between` before it unless the
 * text is empty. */
void smalti_append(char *text, size_t size, const char *between, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Returns the bytes of a text before this ending; -1: it has another. */
int64_t smalti_stem(const char *text, const char *ending);

static inline int64_t smalti_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t smalti_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Rounds up to the next multiple. */
static inline int64_t smalti_round_up(int64_t value, int64_t multiple)
{
	return (value + multiple - 1) / multiple * multiple;
}

/* Releases a local variable where its scope ends, on every way out:
 *
 *	SCOPED(free) char *path = smalti_format(error, "%s/claims", directory);
 *
 * Set the variable to NULL to hand its value on. Not for functions that longjmp() leaves. */
#define SCOPED(release) __attribute__((cleanup(release##_scoped)))
/* Defines SCOPED(release) for `type`, a pointer; `release` takes NULL, too. */
#define SCOPED_RELEASE(type, release)                                                                        \
	static inline void release##_scoped(type *variable)                                                  \
	{                                                                                                    \
		release(*variable);                                                                          \
	}

static inline void free_scoped(void *variable)
{
	void *memory;
	memcpy(&memory, variable, sizeof(memory));
	free(memory);
}

/* Closes a descriptor that is not negative. */
static inline void close_scoped(const int *file)
{
	if (*file >= 0)
		close(*file);
}

/* Holds the mutex to the end of the scope. */
#define HOLD_MUTEX(mutex)                                                                                    \
	pthread_mutex_t *held_mutex __attribute__((cleanup(smalti_mutex_release), unused)) =                 \
	    smalti_mutex_take(mutex)
static inline pthread_mutex_t *smalti_mutex_take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}
static inline void smalti_mutex_release(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

#ifdef __cplusplus
}
#endif
