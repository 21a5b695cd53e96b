/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/checkpoint.h"

/* Gives each tensor of 8 bits its scale, which is a tensor beside it: X.scale_weight or X.weight_scale (one
 * number, or one for each row), or X.SCB of LLM.int8 (rows, 127 times the scale). Integers without a scale,
 * and fp8 without one in a checkpoint that scales such tensors, are marked: they cannot be found. */
int smalti_scales_attach(struct smalti_checkpoint *checkpoint, struct smalti_error *error);
