/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/common_rows.h"

const char *const smalti_precisions[] = {"f32", "bf16", NULL};
