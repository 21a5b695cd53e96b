/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* StarPU's TCP/IP master-slave, which is for tests: other processes, the slaves, each with a memory of its
 * own. StarPU moves what a task reads there. A slave executes the operations that devices run, by their
 * functions for CPUs. */

/* The first that a program does. In a slave, which STARPU_TCPIP_MS_MASTER in the environment makes of this
 * process, it executes what the master sends and ends the process: a slave reads no options, and opens no
 * files. */
void smalti_slave_serve(void);

/* With StarPU running: whether there are any. */
bool smalti_slaves_serve(void);
