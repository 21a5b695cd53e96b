/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"

/* bench/NAME_command.c defines a command of `smalti-bench`, bench/main.c lists it. */
extern const struct smalti_command smalti_bench_generate_command;
extern const struct smalti_command smalti_bench_kernels_command;
extern const struct smalti_command smalti_bench_make_model_command;
extern const struct smalti_command smalti_bench_schedule_command;
extern const struct smalti_command smalti_bench_stages_command;
extern const struct smalti_command smalti_bench_train_command;

/* Options of every command that measures, as a member `bench` of its option struct. */
struct smalti_bench_options {
	int64_t repeats;
	bool json;
	const char *compare, *output;
};

#define SMALTI_BENCH_ROWS(type)                                                                              \
	{SMALTI_INT64(type, bench.repeats),                                                                  \
	 "repeats",                                                                                          \
	 0,                                                                                                  \
	 "N",                                                                                                \
	 "how often each thing is measured: the median counts",                                              \
	 .minimum = 1,                                                                                       \
	 .maximum = 1000},                                                                                   \
	    {SMALTI_FLAG(type, bench.json), "json", 0, NULL, "print JSON Lines instead of a table"},         \
	    {SMALTI_STRING(type, bench.output), "output", 'o', "FILE", "keep the JSON Lines in FILE, too"},  \
	{                                                                                                    \
		SMALTI_STRING(type, bench.compare), "compare", 0, "FILE",                                    \
		    "show ratios to what FILE, an earlier --json or --output of the same command, holds"     \
	}
