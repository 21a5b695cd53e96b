# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# Locality beside dmdas, simulated and measured.

# in_turns OPTION...: the medians of both policies.
in_turns() {
    local policy run
    for run in {1..18}; do
        for policy in dmdas locality; do
            measured $policy "$@" >"$work/seconds"
            [ "$run" -le 3 ] || echo "$policy $(cat "$work/seconds")"
        done
    done | sort -k 1,1 -k 2,2n | awk '{ t[$1, ++n[$1]] = $2 } END { print t["dmdas", 8], t["locality", 8] }'
}

policies() {
    local set machine options dmdas locality
    work=$(mktemp -d)
    echo "| | machine | case | dmdas | locality | dmdas / locality |"
    echo "|---|---|---|---|---|---|"
    tail -n +2 "$root/docs/studies/policies.csv" | while IFS=, read -r set machine options; do
        read -ra options <<<"$options"
        if [ "$machine" = here ]; then
            read -r dmdas locality < <(in_turns "${options[@]}")
        else
            dmdas=$(makespan "$machine" dmdas "${options[@]}") locality=$(makespan "$machine" locality "${options[@]}")
        fi
        awk -v head="| $set | $machine | \`${options[*]}\` |" -v a="$dmdas" -v b="$locality" \
            'BEGIN { printf "%s %.3g | %.3g | %.2f |\n", head, a, b, a / b }'
    done
    rm -r "$work"
}
