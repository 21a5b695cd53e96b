/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Fills `error` (which may be NULL) unless it already holds an earlier failure: the first cause is
 * the one worth reading. Control characters in the text become '?', so that hostile names cannot
 * break the line. Always returns -1, so that `return smalti_fail(...)` reads well. */
int smalti_fail(struct smalti_error *error, enum smalti_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The failure of another call, if it has one, as this one's: -1, or 0 where there is none. */
int smalti_pass(struct smalti_error *error, const struct smalti_error *cause);

/* The same for a failed system call: appends strerror(errno), which decides the code: SMALTI_ENOENT where
 * there is nothing of that name, SMALTI_ENOMEM, else SMALTI_EIO. */
int smalti_fail_errno(struct smalti_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether the failure lies in what was read, so that reading it again would fail again: an item fails alone.
 * Otherwise the machine could not at this moment (no memory, no descriptors, a disk that is away): the work
 * stops, to be gone on with later. */
bool smalti_is_of_input(enum smalti_code code);

#ifdef __clang_analyzer__ /* says to the static analyser, which sees one file at a time, what they return */
#define smalti_fail(...)       (smalti_fail(__VA_ARGS__), -1)
#define smalti_fail_errno(...) (smalti_fail_errno(__VA_ARGS__), -1)
#endif

/* The first line of a public function: the failure that it returns with replaces what `error` held before,
 * for the caller may use one structure for many calls. Not of those that close: they come behind the failure
 * that is worth reading. `error` is the function's parameter. */
struct smalti_error_report {
	struct smalti_error *caller, own;
};
void smalti_error_report_end(struct smalti_error_report *report);
#define SMALTI_REPORT(error)                                                                                 \
	struct smalti_error_report report                                                                    \
	    __attribute__((cleanup(smalti_error_report_end))) = {(error), SMALTI_NO_ERROR};                  \
	(error) = &report.own

/* Puts `prefix: ` before the message that is there already (to add the file to a parser's words). */
void smalti_error_prefix(struct smalti_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What public functions demand of their arguments: 0, or -1 with SMALTI_EINVAL, which names `what`. */

/* Neither it nor, of a text, its first byte is missing. */
int smalti_check_given(const void *pointer, const char *what, struct smalti_error *error);
int smalti_check_text(const char *text, const char *what, struct smalti_error *error);
/* least <= value <= most. Of an enum: 0 and its last name. */
int smalti_check_range(int64_t value, int64_t least, int64_t most, const char *what,
		       struct smalti_error *error);
