/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/simulation.h"
#include "smalti/generate.h"

/* Fills in what denoising by this plan needs of each GPU's memory, so that nothing of it is moved out; if
 * blocking, in a program that keeps the whole model there. -1 without memory. */
int smalti_needs(const struct smalti_model *model, const struct smalti_plan *plan, bool blocking,
		 struct smalti_simulation *simulation, struct smalti_error *error);
