# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # what scripts/study sets
# Published seconds of denoising beside simulated ones.

published() {
    tail -n +2 "$root/docs/studies/published.csv" | many | awk -F, '
        function cell(simulated, told) {
            if (told == "") return sprintf("%.3g / out of memory", simulated)
            return sprintf("%.3g / %s (%+.0f %%)", simulated, told, 100 * (simulated / told - 1))
        }
        BEGIN { print "| machine | strategy | 1024 px | 2048 px | 4096 px |\n|---|---|---|---|---|" }
        { row = "| `" $1 "` | " ($2 == "" ? "" : "`" $2 "`") " |"
          if (row != last) { if (last) print line; line = last = row }
          line = line " " cell($5, $4) " |" }
        END { print line }'
}
