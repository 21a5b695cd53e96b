# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# What tests of MPI jobs share, beside command.sh.

# use_mpi SECONDS: has ranks run on few cores, as root, and without ssh; `mpirun` starts them, for so many seconds at most.
use_mpi() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=/bin/false
    export STARPU_HOME=$work
    patience=$1
    mpirun=(timeout -k 5 "$patience" mpirun --oversubscribe --bind-to none)
}

# for_mpi: whether the build is.
for_mpi() {
    grep -q '#define SMALTI_MPI' "$(dirname "$SMALTI")/config.h"
}

# ended_itself SINCE: since then, by $SECONDS, less has passed than what ends a job that would wait for ever.
ended_itself() {
    [ $((SECONDS - $1)) -lt $((patience - 60)) ] || fail "it took $((SECONDS - $1)) s to end"
}
