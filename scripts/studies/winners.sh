# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The fastest strategy by machine and size of the image, simulated.

winners() {
    local machine strategy pixels count
    for machine in 2xA100-PCIe 4xA100-PCIe 8xA100-NVLink 8xL40; do
        count=$(gpus $machine)
        for pixels in 1024 2048; do
            for strategy in patch ring ulysses tensor "hybrid:cfg2.ulysses$((count / 2))" "hybrid:cfg2.ring$((count / 2))" pipeline displaced; do
                echo "$machine,$strategy,$pixels,"
            done
        done
    done | many | awk -F, '
        BEGIN { print "| machine | pixels | fastest exact | the others, as multiples of its time |\n|---|---|---|---|" }
        function say() {
            line = ""
            for (i = 1; i <= n; i++)
                if (name[i] != best) line = line (line == "" ? "" : ", ") sprintf("`%s` %.2f", name[i], time[i] / least)
            printf "| `%s` | %d | `%s`, %.3g s | %s |\n", machine, pixels, best, least, line
        }
        { if ($1 != machine || $3 != pixels) { if (n) say(); n = 0; least = 1e9; machine = $1; pixels = $3 }
          name[++n] = $2; time[n] = $5
          if ($5 < least && $2 !~ /pipeline|displaced/) { least = $5; best = $2 } }
        END { say() }'
}
