/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_EXPORT_H
#define SMALTI_CLI_EXPORT_H

#include "cli/command.h"
#include "smalti/export.h"

/* The options of `smalti export`; strings belong to argv. */
struct smalti_export_settings {
	struct smalti_export_options export;
	bool has_format, has_shard_bytes, json, quiet;
};

extern const struct smalti_command smalti_export_command;

/* The command itself: src/cli/export.c. */
enum smalti_exit smalti_export_run(void *options, int count, char **operands);

#endif
