/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Resets the most memory that this process had resident; false where the system does not allow it. */
bool smalti_peak_reset(void);

/* Returns its bytes; -1 where the system does not tell. */
int64_t smalti_peak_read(void);
