/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_VERIFY_H
#define SMALTI_CLI_VERIFY_H

#include "cli/command.h"

extern const struct smalti_command smalti_verify_command;

#endif
