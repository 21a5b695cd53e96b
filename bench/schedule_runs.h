/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The cases of a sweep: all combinations of the values in comma-separated lists, one list for each option of
 * `smalti`. */
struct smalti_sweep_axis {
	const char *option; /* without the hyphens */
	const char *list;   /* NULL: the option is left out */
};

struct smalti_sweep {
	const struct smalti_sweep_axis *axes;
	int count;
};

int64_t smalti_sweep_cases(const struct smalti_sweep *sweep);
/* Writes the case's value of an axis; false: the option is left out. */
bool smalti_sweep_value(const struct smalti_sweep *sweep, int64_t index, int axis, char value[static 64]);
/* Writes "sched dmdas, tile-tokens 64": the axes that have values. */
void smalti_sweep_name(const struct smalti_sweep *sweep, int64_t index, char name[static 256]);

/* A command line of the program `smalti`, which is beside this one or named by SMALTI. */
struct smalti_call {
	char *items[64]; /* ended by NULL */
	int count;
	bool failed; /* without memory or room */
};

int smalti_call_begin(struct smalti_call *call, struct smalti_error *error);
__attribute__((format(printf, 2, 3))) void smalti_call_add(struct smalti_call *call, const char *format, ...);
/* Runs it; `said` is a file for its messages. -1 with the last of them, or when a signal came, which goes to
 * it, too. */
int smalti_call_run(const struct smalti_call *call, const char *said, struct smalti_error *error);
void smalti_call_free(struct smalti_call *call);
