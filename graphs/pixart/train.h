/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/trained.h"

/* The diffusion transformer in training (docs/reference.md 3): see graphs/trained_pass.h. */
extern const struct smalti_trained_functions smalti_dit_trained;
