#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The most memory of PoCL's devices, as runs report it, is what all libraries together allocated there, and stays within the
# limit; a training step needs what was planned for it.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
use_pocl 'memory of devices'
if sanitized; then
    echo 'skipped under sanitizers, which make devices slow'
    exit 77
fi
library=$(dirname "$SMALTI")/.libs/libcountbuffers.so
cd "$work"

# counted NAME LIMIT OPTION...: runs the command NAME with so many megabytes on each device (0: all); its reports are in `out`.
counted() {
    local name=$1 limit=$2
    shift 2
    rm -f buffers
    SMALTI_BUFFERS=$work/buffers LD_PRELOAD=$library expect 0 '' "$SMALTI" "$name" "$@" -q --cpus 1
    [ "$name" != train ] || cp "${*: -1}/log.jsonl" out
    python3 - "$name ${*: -1}" "$limit" <<'END_OF_PROGRAM' || fail "$name $*: other memory than reported: $(cat buffers)"
import json, sys
of, limit = sys.argv[1], int(sys.argv[2]) << 20
reports = [json.loads(line) for line in open("out")]
devices = next(d for d in (r.get("summary", r).get("devices") for r in reversed(reports)) if d)
counted = sorted(device["peak_memory"] for device in devices)
allocated = sorted(int(line) for line in open("buffers"))  # in no order of the devices
print(f"{of}, {limit or 'no'} limit: allocated {allocated}, counted {counted}")
assert len(counted) == len(allocated)
for a, b in zip(allocated, counted):
    assert abs(a - b) <= 0.05 * a and (not limit or a <= limit), (a, b)
END_OF_PROGRAM
}

counted generate 0 -p 'a red star' -s 128x192 --steps 2 --json --opencl 1 --reproducible -o one.png
counted generate 0 -p 'a red star' -s 128x192 --steps 2 --json --opencl 2 --strategy patch -o patch.png
counted generate 24 -p 'a red star' -s 128x192 --steps 2 --json --opencl 2 --strategy tensor --gpu-memory-limit 24M -o tensor.png

# Latents [4, 64, 64] of F16 between 0.13 and 0.65. Large products copy their operands.
seq 30000 | tr -d '\n' >digits
{
    header='{"latents":{"dtype":"F16","shape":[4,64,64],"data_offsets":[0,32768]}}'
    printf '%b\0\0\0\0\0\0\0%s' "\\x$(printf %02x ${#header})" "$header"
    head -c 32768 digits
} >latents.safetensors
decode=(decode 0 latents.safetensors --json --opencl 1 --reproducible --tile-rows 32)
counted "${decode[@]}" -o large.png
decode[1]=100
counted "${decode[@]}" --gpu-memory-limit 100M -o limited.png
counted decode 100 latents.safetensors --json --opencl 2 --shares 0:1:1 --gpu-memory-limit 100M -o shared.png

# A device gets the room that was planned for its tiles, half of its memory: they fill it, and no more moves than in plenty,
# where StarPU keeps the memory of former tiles, too.
"$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 256 -q -o features
small_config 4 48 >config.json
train=(features --init config.json --steps 2 --batch 2 --lanes 2 --micro 1 --recompute auto)
while read -r name options; do
    # shellcheck disable=SC2086
    counted train 0 "${train[@]}" $options -o "$name"
    limits=$(python3 - <<'END_OF_PROGRAM'
import json
steps = [[device["planned"] for device in r["devices"]] for r in map(json.loads, open("out")) if "loss" in r]
for number, plans in enumerate(zip(*steps)):
    print(f"STARPU_LIMIT_OPENCL_{number}_MEM={-(-2 * max(plans) >> 20)}")
END_OF_PROGRAM
    )
    (
        # shellcheck disable=SC2086,SC2163
        export $limits
        # shellcheck disable=SC2086
        counted train 0 "${train[@]}" $options -o "$name-planned"
    )
    python3 - "$name" <<'END_OF_PROGRAM' || fail "$name: other memory than planned"
import json, sys
plenty, planned = ([json.loads(line) for line in open(f"{sys.argv[1]}{of}/log.jsonl")] for of in ("", "-planned"))
steps = [[device["planned"] for device in r["devices"]] for r in planned if "loss" in r]
plans = [max(plans) for plans in zip(*steps)]
for plan, a, b in zip(plans, plenty[-1]["devices"], planned[-1]["devices"], strict=True):
    print(f"{a['name']}: planned {plan}, tiles {b['peak_tiles']} (in plenty {a['peak_tiles']}), "
          f"to it {b['bytes_to']} ({a['bytes_to']})")
    assert b["peak_tiles"] <= 1.05 * plan
    # The peak depends on which tasks run at the same time. The others' samples may be smaller.
    assert b["peak_tiles"] >= 0.9 * plan or plan < max(plans)
    assert b["peak_memory"] <= b["memory"]
    assert b["bytes_to"] <= 1.05 * a["bytes_to"]
END_OF_PROGRAM
done <<'RUNS'
alone --opencl 1 --reproducible
data --opencl 2 --strategy data2
patch --opencl 2 --strategy patch2
RUNS

# The steps of products that copy their matrices, and of lists of them, are those of others but for rounding.
SMALTI_COPIES=1 counted train 0 "${train[@]}" --opencl 1 --reproducible -o copied
python3 - <<'END_OF_PROGRAM' || fail "copied: other steps"
import json
steps = [[r for r in map(json.loads, open(f"{run}/log.jsonl")) if "loss" in r] for run in ("alone", "copied")]
for a, b in zip(*steps, strict=True):
    print(a["loss"], b["loss"], a["norm"], b["norm"])
    for key in "loss", "norm":
        assert abs(a[key] - b[key]) <= 2e-5 * abs(a[key])
END_OF_PROGRAM
