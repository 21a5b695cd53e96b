/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_HEARTBEAT_H
#define SMALTI_STORE_HEARTBEAT_H

#include "base/error.h"

#include <stdint.h>

/* A thread that renews the times of open files, four times in a lease: others see by them that this process
 * is there and reaches the directory. */
struct smalti_heartbeat;

struct smalti_heartbeat *smalti_heartbeat_start(int64_t lease_seconds, struct smalti_error *error);
/* Before it, all files were removed. NULL is fine. */
void smalti_heartbeat_stop(struct smalti_heartbeat *heartbeat);

int smalti_heartbeat_add(struct smalti_heartbeat *heartbeat, int file, struct smalti_error *error);
/* From its return on the file is not touched any more. One that was not added is fine. */
void smalti_heartbeat_remove(struct smalti_heartbeat *heartbeat, int file);

#endif
