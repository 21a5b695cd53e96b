/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mpi.h>

/* For src/rt: what StarPU-MPI sends tiles over. */
MPI_Comm smalti_ranks_data(void);
