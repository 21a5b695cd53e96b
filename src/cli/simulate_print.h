/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <cjson/cJSON.h>

/* Prints for people what a simulation showed that took `seconds` itself. */
int smalti_simulation_print(const cJSON *outcome, double seconds, FILE *file, struct smalti_error *error);
/* Prints the machines that are shipped. */
int smalti_machines_print(FILE *file, struct smalti_error *error);
