/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mpi.h>

/* Returns what StarPU-MPI sends tiles over, for src/rt. */
MPI_Comm smalti_ranks_data(void);
