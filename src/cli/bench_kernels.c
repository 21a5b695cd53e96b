/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/roofline.h"
#include "cli/bench.h"
#include "kernels/isa.h"

#include <stdio.h>

struct kernels_options {
	bool json;
};

static const struct kernels_options defaults = {.json = false};

static const struct smalti_option rows[] = {
    {SMALTI_FLAG(struct kernels_options, json), "json", 0, NULL, "print JSON Lines"},
};

static const struct smalti_example examples[] = {
    {"What one thread reaches", "smalti bench kernels"},
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands);

const struct smalti_command smalti_bench_kernels_command = {
    .name = "bench kernels",
    .summary = "time every operation in one thread against the machine's bounds",
    .operands = "",
    .description = "Measures what one thread reaches: arithmetic in registers and memory bandwidth.",
    .options = SMALTI_OPTION_TABLE(rows),
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(struct kernels_options),
    .run = run,
};

static enum smalti_exit run(void *values, int count, char **operands)
{
	const struct kernels_options *options = values;
	if (count)
		return smalti_usage_error(&smalti_bench_kernels_command, "unexpected operand '%s'",
					  operands[0]);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_roofline roofline;
	if (smalti_isa_check(&error) < 0)
		return smalti_usage_error(&smalti_bench_kernels_command, "%s", error.message);
	if (smalti_roofline_measure(&roofline, &error) < 0) {
		fprintf(stderr, "smalti bench kernels: %s\n", error.message);
		return SMALTI_EXIT_FAILED;
	}
	printf(options->json ? "{\"f32\":%.0f,\"bf16\":%.0f,\"read\":%.0f,\"triad\":%.0f}\n"
			     : "f32 %.4g FLOP/s, bf16 %.4g FLOP/s, read %.4g B/s, triad %.4g B/s\n",
	       roofline.f32, roofline.bf16, roofline.read, roofline.triad);
	return smalti_finish_stdout();
}
