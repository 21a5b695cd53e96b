# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# Makespans on this machine, simulated and measured.

predicted() {
    local round number machine slow policy options traces cases=$root/docs/studies/predicted.csv
    local fixed=(--grain operation --steps 4)
    work=$(mktemp -d)
    for round in {1..18}; do
        number=0
        while IFS=, read -r machine slow policy options; do
            number=$((number + 1))
            read -ra options <<<"$options"
            mkdir -p "$work/${machine// /-}/traces"
            STARPU_HOME=$work/${machine// /-} SMALTI_SLOWDOWN=$slow \
                measured "$policy" "${fixed[@]}" "${options[@]}" --trace "$work/trace" >"$work/seconds" 2>"$work/err" </dev/null ||
                die "$(cat "$work/err")"
            if [ "$round" -le 2 ]; then
                continue
            elif [ $((round % 2)) -eq 0 ]; then
                mv "$work/trace" "$work/${machine// /-}/traces/$number.$round.json"
            else
                span "$work/trace" >>"$work/$number"
            fi
        done < <(tail -n +2 "$cases")
    done
    number=0
    while IFS=, read -r machine slow policy options; do
        number=$((number + 1))
        traces=$(find "$work/${machine// /-}/traces" -type f | sort | paste -sd,)
        "$SMALTI" simulate --measured "$traces" --calibrate "$work/machine.json"
        [[ $options == *--opencl* ]] || options="$options --opencl 0"
        # shellcheck disable=SC2086 # several words
        echo "$machine|$policy|$options|$(sort -n "$work/$number" | xargs)|$(makespan "$work/machine.json" "$policy" "${fixed[@]}" \
            --measured "$traces" ${options/--opencl/--gpus})"
    done < <(tail -n +2 "$cases") | awk -F'|' '
        BEGIN { print "| machine | case | policy | measured | simulated | error |\n|---|---|---|---|---|---|" }
        { n = split($4, t, " "); real[NR] = (t[n / 2] + t[n / 2 + 1]) / 2; least[NR] = t[n / 4 + 1]; most[NR] = t[n - n / 4]
          sim[NR] = $5; place[NR] = $1 $3
          error = 100 * (sim[NR] / real[NR] - 1); size = error < 0 ? -error : error
          sum += size; if (size > worst) worst = size
          sub(/ --opencl 0$/, "", $3)
          printf "| %s | `%s` | `%s` | %.3g s (%.3g to %.3g) | %.3g s | %+.1f %% |\n", $1, $3, $2, real[NR], least[NR], most[NR], sim[NR], error }
        END {
            for (i = 1; i <= NR; i++) for (j = i + 1; j <= NR; j++)
                if (place[i] == place[j] && (least[i] > most[j] || least[j] > most[i])) {
                    pairs++; same += (real[i] > real[j]) == (sim[i] > sim[j]) }
            printf "\nMean error %.1f %%, the largest %.1f %%. Of %d pairs of policies on the same machine " \
                "the middle halves of whose measured times do not overlap %d are in the same order: " \
                "Kendall'"'"'s τ %.2f.\n", sum / NR, worst, pairs, same, pairs ? (2 * same - pairs) / pairs : 0 }'
    rm -r "$work"
}
