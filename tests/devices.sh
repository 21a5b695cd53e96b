#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An image under policies that choose differently, and golden outputs of the stages, on two OpenCL devices (PoCL's) and a
# CPU, by the tolerances for CPUs; and what topologies and traces tell of devices.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
use_pocl 'golden outputs on devices'
[ "$(grep -c '^  OpenCL [01] ' "$work/topology")" -eq 2 ] || fail "not two devices: $(cat "$work/topology")"

latents cpu --cpus 1
for policy in eager dmda dmdas lws; do
    latents $policy --opencl 2 --cpus 1 --sched $policy --trace "$work/trace"
    near $policy
    [ $policy != eager ] || { traced 'OpenCL 0' && traced 'OpenCL 1'; }
done
STARPU_NOPENCL=2 golden 'T5, f32' 'DiT, f32' 'VAE decoder, f32' 'VAE encoder, bf16'
