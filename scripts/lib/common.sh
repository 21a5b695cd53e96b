# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034
# What the scripts share: strict mode, messages on stderr, and where things lie. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/smalti
me=scripts/$(basename "$0")
cores=$(nproc)
# What runs configure runs libtool, too, for every file that is compiled: the system's shell is often quicker than bash.
export CONFIG_SHELL=/bin/sh

# What one build compiled, others of the same source take, whatever folder and StarPU they have, where there is ccache.
use_ccache() {
    [ -d /usr/lib/ccache ] || return 0
    export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
    [[ :$PATH: == *:/usr/lib/ccache:* ]] || export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
}
use_ccache

say() {
    printf '%s: %s\n' "$me" "$*" >&2
}

die() {
    say "$*"
    exit 1
}

# Shows the comment at the head of the script, which is its manual.
usage() {
    sed -n '3,/^$/s/^#\( \|$\)//p' "$0"
}

# The usage error exit of every script, as of the command.
bad_usage() {
    say "$* (see $me --help)"
    exit 2
}

# have COMMAND: whether it can be run.
have() {
    command -v "$1" >/dev/null
}

# The folder of CUDA's toolkit: CUDA_HOME, else that of nvcc, else the usual place.
cuda_toolkit() {
    local nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
    [ -n "${CUDA_HOME:-}" ] || ! have nvcc || nvcc=$(realpath "$(command -v nvcc)")
    [ -x "$nvcc" ] || die "no CUDA toolkit: $nvcc is not there; install CUDA 12 or 13 and set CUDA_HOME to its folder"
    dirname "$(dirname "$nvcc")"
}
