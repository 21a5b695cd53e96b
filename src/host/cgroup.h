/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The limits of the process's control groups (of a container, a batch system, systemd). 0: no limit, or none
 * that can be read. */
struct smalti_cgroup {
	int64_t memory; /* bytes */
	double cpus;    /* seconds of processors per second */
};

/* Reads the limits. `root` precedes /proc and /sys; "" outside of tests. */
struct smalti_cgroup smalti_cgroup_read(const char *root);
