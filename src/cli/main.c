/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/help.h"

static const struct smalti_command *const commands[] = {
    &smalti_generate_command, &smalti_decode_command,     &smalti_encode_command,
    &smalti_extract_command,  &smalti_verify_command,     &smalti_export_command,
    &smalti_train_command,    &smalti_retrieve_command,   &smalti_serve_command,
    &smalti_quantize_command, &smalti_step_cache_command, &smalti_report_command,
    &smalti_simulate_command, &smalti_topology_command,   NULL,
};

static const struct smalti_command smalti = {
    .name = "smalti",
    .summary = "text-to-image models as task graphs",
    .description = smalti_about,
    .commands = commands,
    .related = "smalti-bench",
};

int main(int argc, char **argv)
{
	return (int)smalti_command_run(&smalti, argc, argv);
}
