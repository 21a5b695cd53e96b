# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# Published seconds of denoising, and memory, beside simulated ones.

# cell MACHINE GPUS STRATEGY SYNCHRONOUS PIXELS: seconds of 20 steps of both branches in half precision, on all GPUs
# if their number is empty; "out" behind them where their memory does not hold it. Of a strategy with synchronous passes at
# first all steps are simulated, and one more of those before them, in which weights are loaded.
cell() {
    local machine=$1 count=${2:-$(gpus "$1")} strategy=$3 passes=$4 pixels=$5 side=$(($5 / 16)) tile options
    tile=$(((side * side + count - 1) / count))
    [ "$count" -gt 1 ] || [ $tile -lt 4096 ] || tile=4096
    options=(--machine "$machine" --gpus "$count" --model sigma-1024 --size "${pixels}x$pixels" --precision f16 --tile-tokens "$tile")
    [ -z "$strategy" ] || options+=(--strategy "$strategy")
    if [ -n "$passes" ]; then
        options+=(--steps 21 --warmup $((passes + 1)))
    else
        options+=(--steps 4)
    fi
    "$SMALTI" simulate --blocking "${options[@]}" | awk '$1 == "a" && $2 == "step" { time = 20 * $3 } /out of memory:/ { out = " out" }
        END { print time out }'
}
export -f cell

# cells: the lines of docs/studies/published.csv with ",SECONDS" behind them.
cells() {
    # shellcheck disable=SC2016 # the inner shell's variables
    tail -n +2 "$root/docs/studies/published.csv" | nl -ba -w1 -s, | xargs -P "$cores" -d '\n' -I{} bash -euo pipefail -c '
        IFS=, read -r number machine count strategy passes pixels told fitted <<<"{}"
        seconds=$(cell "$machine" "$count" "$strategy" "$passes" "$pixels") || exit 255 # no more are begun
        echo "$number,$machine,$count,$strategy,$passes,$pixels,$told,$fitted,$seconds"' | sort -t, -n | cut -d, -f2-
}

published() {
    cells | awk -F, '
        function seconds(value) { return value + 0 >= 1000 ? sprintf("%.0f", value) : sprintf("%.3g", value) }
        function cell(told, simulated) {
            if (told == "" || simulated ~ /out/) return (simulated ~ /out/ ? "out of memory" : seconds(simulated)) " / " (told == "" ? "out of memory" : told)
            return sprintf("%s / %s (%+.0f %%)", seconds(simulated), told, 100 * (simulated / told - 1))
        }
        function say(i) {
            for (i = 1; i <= 5; i++) line = line " " place[i] " |"
            print line
            delete place
        }
        function median(values, n, i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && values[j - 1] > values[j]; j--) { t = values[j]; values[j] = values[j - 1]; values[j - 1] = t }
            return n ? (values[int((n + 1) / 2)] + values[int(n / 2) + 1]) / 2 : 0
        }
        BEGIN {
            split("512 1024 2048 4096 8192", size, " ")
            for (i in size) at[size[i]] = i
            print "| machine | GPUs | strategy | 512 px | 1024 px | 2048 px | 4096 px | 8192 px |\n|---|---|---|---|---|---|---|---|" }
        { row = "| `" $1 "` | " ($2 == "" ? "all" : $2) " | " ($3 == "" ? "" : "`" $3 "`") ($4 == "" ? "" : ", " $4 " synchronous") " |"
          if (row != last) { if (last) say(); line = last = row }
          place[at[$5]] = cell($6, $8)
          if ($6 == "") { outs++; right += $8 ~ /out/ }
          else wrong += $8 ~ /out/
          if ($3 == "" || $6 == "") next
          error = 100 * ($8 / $6 - 1); error = error < 0 ? -error : error
          of_all[++all] = error
          near += error <= 15
          if ($7 == "") of_free[++free] = error }
        END {
            say()
            printf "\nOf %d cells of several GPUs that ran half are within **%.0f %%**, and %d within 15 %%; of the %d to which no link was fitted " \
                "half are within **%.0f %%**. Of %d cells that ran out of memory %d do so here, and %d of those that ran.\n",
                all, median(of_all, all), near, free, median(of_free, free), outs, right, wrong }'
    memory
}

# memory: the table of docs/studies/memory.csv, GB of a GPU, beside what a simulated program needs whose exchanges block.
memory() {
    local machine strategy pixels told
    printf '\nGB on each GPU, simulated / published:\n\n| machine | strategy | 1024 px | 2048 px | 4096 px | 8192 px |\n|---|---|---|---|---|---|\n'
    tail -n +2 "$root/docs/studies/memory.csv" | while IFS=, read -r machine strategy pixels told; do
        echo "$machine,$strategy,$pixels,$told,$("$SMALTI" simulate --machine "$machine" --model sigma-1024 --size "${pixels}x$pixels" \
            --precision f16 --steps 1 --tile-tokens $((pixels * pixels / 1024)) --json --blocking ${strategy:+--strategy "$strategy"} |
            grep -oE '"needed":[0-9]+' | cut -d: -f2 | sort -n | tail -n 1)"
    done | awk -F, '
        { row = "| `" $1 "` | " ($2 == "" ? "" : "`" $2 "`") " |"
          if (row != last) { if (last) print line; line = last = row }
          line = line sprintf(" %.1f / %s |", $5 / 1e9, $4 == "" ? "out of memory" : $4) }
        END { print line }'
}
