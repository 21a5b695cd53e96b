/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_BENCH_H
#define SMALTI_CLI_BENCH_H

#include "cli/command.h"

/* `smalti bench` is a group: src/cli/bench_NAME.c defines a command of it, src/cli/bench.c lists it. */
extern const struct smalti_command smalti_bench_command;
extern const struct smalti_command smalti_bench_kernels_command;
extern const struct smalti_command smalti_bench_make_model_command;

#endif
