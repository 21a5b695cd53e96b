/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <cjson/cJSON.h>

/* What a simulation showed that took so many seconds itself, for people. */
int smalti_simulation_print(const cJSON *outcome, double seconds, FILE *file, struct smalti_error *error);
/* The machines that are shipped. */
int smalti_machines_print(FILE *file, struct smalti_error *error);
