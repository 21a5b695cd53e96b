/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/bench.h"
#include "rt/device_use.h"
#include "smalti/model.h"

#include <cjson/cJSON.h>

/* The output of all commands of `smalti-bench`: a table, or JSON Lines. The first line has the command and
 * the machine, each other line a measurement with "name" and "seconds". */

/* One column; the first is the seconds. */
struct smalti_bench_column {
	const char *key;     /* in JSON, in plain units */
	const char *heading; /* in the table, with its unit; NULL: in JSON alone */
	double scale;        /* to that unit; 0: the value is a text */
	const char *format;  /* of the scaled number: "%.1f" */
};

struct smalti_bench_value {
	double number; /* NAN: none */
	const char *text;
};

struct smalti_bench_report;

/* Returns facts for a report: the model, the precision and the measured workers. */
cJSON *smalti_bench_facts(const char *model, enum smalti_precision precision,
			  const struct smalti_session_options *session);

/* Reads the file to compare with, opens the output. Adds the machine to `facts`, which it frees, also on
 * failure. Texts must outlive the report. */
struct smalti_bench_report *smalti_bench_report_open(const struct smalti_command *command,
						     const struct smalti_bench_options *options, cJSON *facts,
						     const struct smalti_bench_column *columns, int count,
						     struct smalti_error *error);
/* Adds a measurement, with the devices' use, if any: "devices" in JSON, a line for each below that of the
 * table. */
int smalti_bench_report_add(struct smalti_bench_report *report, const char *name,
			    const struct smalti_bench_value *values, const struct smalti_device_use *uses,
			    int devices, struct smalti_error *error);
/* Ends the report with the comparison, and `note` (or NULL) below the table; commits the output if `status`
 * is 0. Frees the report; NULL is allowed. 0 or -1. */
int smalti_bench_report_close(struct smalti_bench_report *report, const char *note, int status,
			      struct smalti_error *error);

/* Runs a command that takes no operands. */
enum smalti_exit smalti_bench_run(const struct smalti_command *command,
				  int (*measure)(const void *options, struct smalti_error *error),
				  const void *options, int count, char **operands);
