/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/update_rules.h"

/* The loops of optimizers.c over the elements of a tensor or of a row, compiled once per instruction set. */

enum { SMALTI_ROW_ROOM = 16 }; /* numbers behind `sums` that may be written */
