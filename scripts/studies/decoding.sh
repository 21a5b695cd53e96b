# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Decoding 8192 x 8192 pixels on one to eight GPUs, by their memory, simulated.

# decode MACHINE ROWS OPTION...: seconds of decoding, and GiB of the fullest GPU's memory.
decode() {
    local machine=$1 rows=$2
    shift 2
    "$SMALTI" simulate --machine "$machine" --model sigma-1024 --precision f16 --sched dmdas --json --size 8192x8192 --steps 1 \
        --tile-tokens 16384 --tile-rows "$rows" "$@" | tr ',{' '\n' | awk -F: '
        /^"decoding"/ { seconds = $2 }
        /^"peak"/ && ++memories > 1 && $2 > peak { peak = $2 }
        END { print seconds, peak / 2^30 }'
}

decoding() {
    local machine gpus rows limit cases
    echo "| GPUs | \`--tile-rows\` | replicated | as published | 80 GB: in use | time | | 48 GB: time | 24 GB: time |"
    echo "|---|---|---|---|---|---|---|---|---|"
    while read -r machine gpus rows; do
        cases=$(decode "$machine" "$rows")
        for limit in 40G 20G; do # nine tenths of what such a card has
            cases+=" $(decode "$machine" "$rows" --gpu-memory-limit $limit | cut -d' ' -f1)"
        done
        echo "$gpus $rows $cases"
    done <<'END_OF_LIST' | awk '{ alone = alone ? alone : $3
        printf "| %d | %d | 64 GiB | %d GiB | %.1f GiB | %.2f s | %.2f × | %.2f s | %.2f s |\n", $1, $2, 64 / $1, $4, $3, alone / $3, $5, $6 }'
1xA100-PCIe 1 8
2xA100-NVLink 2 8
4xA100-NVLink 4 8
8xA100-NVLink 8 8
8xA100-NVLink 8 4
END_OF_LIST
}
