#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti retrieve query` on PoCL's devices: what is found, and its scores, are a CPU's to the bit, whatever the policy.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
use_pocl 'search on devices'
cd "$work"

for i in {1..40}; do echo "{\"id\": \"scene-$i\", \"prompt\": \"a star and $i circles\"}"; done >scenes.jsonl
"$SMALTI" extract scenes.jsonl --t5 -k prompt -q --cpus 1 -o features
"$SMALTI" retrieve index features -o captions -q
# asked OPTION...: for each item, in JSON, to found; its summary apart.
asked() {
    "$SMALTI" retrieve query captions --features features --top 7 --json --cpus 1 "$@" >all
    grep -v '"summary"' all >found
    grep '"summary"' all >summary
}
asked
cp found cpu
[ "$(wc -l <cpu)" -eq 40 ] || fail "not 40 queries: $(cat all)"
! grep -q '"devices"' summary || fail "devices without devices: $(cat summary)"

for policy in eager dmda dmdas lws; do
    asked --opencl 2 --sched $policy
    cmp cpu found || fail "$policy: other items or scores than a CPU's"
done
asked --opencl 1 --reproducible --trace "$work/trace"
cmp cpu found || fail "--reproducible: other items or scores than a CPU's"
traced 'OpenCL 0'
grep -q '"devices":\[{"name":"OpenCL 0 .*"flops":[1-9]' summary || fail "what the device did: $(cat summary)"

# A prompt is encoded on devices, too, which round otherwise: the same item, nearly as good.
"$SMALTI" retrieve query captions 'a star and 17 circles' --top 1 --cpus 1 >one
"$SMALTI" retrieve query captions 'a star and 17 circles' --top 1 --cpus 1 --opencl 1 --reproducible >two
cmp one two || fail "another item by a device: $(cat one two)"
