/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What the process's control groups (of a container, a batch system, systemd) allow. 0: no limit, or none
 * that can be read. */
struct smalti_cgroup {
	int64_t memory; /* bytes */
	double cpus;    /* seconds of processors per second */
};

/* `root` is put in front of /proc and /sys; "" outside of tests. */
struct smalti_cgroup smalti_cgroup_read(const char *root);
