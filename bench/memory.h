/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Forgets the most memory that this process had resident so far; false where the system does not let it. */
bool smalti_peak_reset(void);

/* Bytes; -1 where the system does not tell. */
int64_t smalti_peak_read(void);
