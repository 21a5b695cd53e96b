# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What exact strategies reach, simulated.

# figure NAME MACHINE OPTION...: of a simulated image in half precision: makespan, step, area_bound …
figure() {
    local name=$1 machine=$2
    shift 2
    "$SMALTI" simulate --machine "$machine" --model sigma-1024 --precision f16 --sched dmdas --json "$@" | grep -oE "\"$name\":[0-9.e+-]+" | cut -d: -f2
}

exact() {
    local pixels seconds name images
    echo "Four A100 over PCIe, 20 steps of both branches, beside the fastest that was published, exact or not:"
    echo
    echo "| pixels | \`hybrid:cfg2.ring2\` | published | |"
    echo "|---|---|---|---|"
    while read -r pixels seconds name; do
        awk -v pixels="$pixels" -v told="$seconds" -v name="$name" -v step="$(figure step 4xA100-PCIe --size "${pixels}x$pixels" --steps 4 \
            --strategy hybrid:cfg2.ring2 --grain operation --tile-tokens $((pixels * pixels / 1024)))" \
            'BEGIN { printf "| %d | %.3g s | %s s, `%s` | %.2f |\n", pixels, 20 * step, told, name, 20 * step / told }'
    done <<'END_OF_LIST'
1024 0.866 pipeline
2048 5.37 pipeline
4096 59.01 ulysses
8192 710.95 ulysses
END_OF_LIST
    echo
    echo "An A100, an L40 and a T4 together, \`--strategy ring --shares auto --grain half-block\`, whole images of 20 steps beside their bound by work:"
    echo
    echo "| pixels | images | makespan | bound | |"
    echo "|---|---|---|---|---|"
    while read -r pixels images; do
        figure '(makespan|area_bound)' A100-L40-T4 --size "${pixels}x$pixels" --steps 20 --images "$images" --strategy ring --shares auto \
            --grain half-block --tile-tokens $((pixels * pixels / 1024)) | xargs | awk -v pixels="$pixels" -v images="$images" \
            '{ printf "| %d | %d | %.3g s | %.3g s | %.0f %% |\n", pixels, images, $1, $2, 100 * $2 / $1 }'
    done <<'END_OF_LIST'
2048 1
2048 4
4096 1
END_OF_LIST
}
