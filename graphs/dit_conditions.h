/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_DIT_CONDITIONS_H
#define SMALTI_GRAPHS_DIT_CONDITIONS_H

#include "graphs/dit.h"

enum { SMALTI_DIT_MAX_BRANCHES = 2 }; /* without and with the prompt */

struct smalti_conditions {
	int64_t columns;               /* patches in a row of the picture */
	struct smalti_tile *timestep;  /* e, f32 [steps, width] (3.3) */
	struct smalti_tile *adaln;     /* g, f32 [steps·6, width] */
	struct smalti_tile *positions; /* see smalti_positions() */
};

#endif
