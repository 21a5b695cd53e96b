#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The policies that are shipped: the same image as under StarPU's own, named by --sched or by STARPU_SCHED alone.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

image() {
    local name=$1
    shift
    "$SMALTI" generate -p 'a red star above a blue ring' --steps 2 --tile-tokens 16 -q -o "$name.png" "$@" 2>err ||
        fail "$*: $(cat err)"
}
image own --sched lws
for policy in locality nearest; do
    for cpus in 1 3; do
        image $policy --sched $policy --cpus $cpus
        cmp own.png $policy.png || fail "$policy made another image"
    done
    STARPU_SCHED=$policy image variable
    cmp own.png variable.png || fail "$policy, by STARPU_SCHED, made another image"
done
refuse 2 "scheduling policy 'locality2' is not known" "$SMALTI" generate -p x --sched locality2
refuse 2 "scheduling policy '../locality' is not known" "$SMALTI" generate -p x --sched ../locality
