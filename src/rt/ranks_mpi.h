/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mpi.h>

/* Returns the communicator on which StarPU-MPI sends tiles; for src/rt. */
MPI_Comm smalti_ranks_data(void);
