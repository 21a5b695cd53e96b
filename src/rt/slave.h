/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* StarPU's TCP/IP master-slave, for tests: slaves are other processes, each with its own memory. StarPU moves
 * what a task reads there. A slave executes the operations that devices run, by their CPU functions. */

/* Serves a master, if STARPU_TCPIP_MS_MASTER in the environment makes this process a slave: executes what the
 * master sends and ends the process. A program calls it first: a slave reads no options, and opens no
 * files. */
void smalti_slave_serve(void);

/* Tells whether there are slaves; StarPU is running. */
bool smalti_slaves_serve(void);
