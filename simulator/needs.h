/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/simulation.h"
#include "smalti/generate.h"

/* Sets the bytes of each GPU's memory that denoising by this plan needs to keep all of it there; if
 * `blocking`, in a program that keeps the whole model there. -1 without memory. */
int smalti_needs(const struct smalti_model *model, const struct smalti_plan *plan, bool blocking,
		 struct smalti_simulation *simulation, struct smalti_error *error);
