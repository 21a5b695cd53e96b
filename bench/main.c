/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

static const struct smalti_command *const commands[] = {
    &smalti_bench_kernels_command,
    &smalti_bench_stages_command,
    &smalti_bench_generate_command,
    &smalti_bench_schedule_command,
    &smalti_bench_train_command,
    &smalti_bench_make_model_command,
    NULL,
};

static const struct smalti_command smalti_bench = {
    .name = "smalti-bench",
    .summary = "measure how fast the parts and the whole are on this machine",
    .description = "Measures Smalti on this machine. Run it on an idle one: other work makes everything "
		   "slower, and nothing here can tell.",
    .commands = commands,
    .related = "smalti",
};

int main(int argc, char **argv)
{
	return (int)smalti_command_run(&smalti_bench, argc, argv);
}
