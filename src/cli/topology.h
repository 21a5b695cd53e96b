/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "smalti/topology.h"

/* Prints it for people. */
void smalti_topology_print(const struct smalti_topology *topology, FILE *to);
/* Prints it as one JSON object. -1 with SMALTI_ENOMEM; a refused write shows in ferror(to). */
int smalti_topology_print_json(const struct smalti_topology *topology, FILE *to, struct smalti_error *error);
