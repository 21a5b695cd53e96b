/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"

/* The commands of `smalti retrieve`. */
extern const struct smalti_command smalti_retrieve_train_command, smalti_retrieve_index_command,
    smalti_retrieve_query_command;
