/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/driver.h"

/* A driver with the functions that each driver has, and none of the others: its device is main memory, and
 * its products are a plain loop. A new driver begins as a copy of tests/template_driver.c. */
extern const struct smalti_device_driver template_driver;

/* Counts the memory that its device has allocated and not released. */
int template_driver_allocations(const struct smalti_device *device);
