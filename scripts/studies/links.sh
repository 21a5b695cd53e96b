# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What is hidden of the transfers between two processes over a slow link, measured and simulated.

# two_ranks RATE TRACE OPTION...: generates an image on two processes, whose connections have that rate in each direction
# (none: all that the machine has); in a network of its own.
two_ranks() {
    local rate=$1 trace=$2
    shift 2
    as_ranks
    # A connection has one of these ports at one end: its two directions are two classes.
    # shellcheck disable=SC2016 # the inner shell's variables
    unshare -n bash -euo pipefail -c '
        ip link set lo up
        if [ "$1" != none ]; then
            tc qdisc add dev lo root handle 1: htb default 3 r2q 1000
            tc class add dev lo parent 1: classid 1:3 htb rate 10gbit quantum 65536
            for direction in 1:1=dport 1:2=sport; do
                tc class add dev lo parent 1: classid "${direction%=*}" htb rate "$1" burst 128k cburst 128k
                tc filter add dev lo parent 1: protocol ip u32 match ip "${direction#*=}" 0x4e00 0xff80 flowid "${direction%=*}"
            done
        fi
        shift
        exec "$@"' two_ranks "$rate" \
        mpirun --oversubscribe --bind-to none --mca btl tcp,self --mca btl_tcp_if_include lo \
        --mca btl_tcp_port_min_v4 20000 --mca btl_tcp_port_range_v4 64 -n 2 "$SMALTI" generate --cpus 1 -q --trace "$trace" "$@"
}

# twin STRATEGY: seconds by which a step is longer over 1 Gbit/s than over the loopback, simulated.
twin() {
    local machine
    for machine in loopback 1gbit; do
        "$SMALTI" simulate --machine "$work/$machine.json" --size 1024x1024 --steps 8 --strategy "${1}2" -p "$prompt" --json |
            sed 's/.*"step":\([0-9.e+-]*\).*/\1/'
    done | awk 'NR == 1 { fast = $1 } END { more = $1 - fast; print (more < 0 ? 0 : more) }'
}

links() {
    local tool work strategy rate options bytes slow fast prompt='a red star above a blue ring'
    for tool in unshare tc ip mpirun; do
        have $tool || die "$tool is needed (Debian: util-linux, iproute2, openmpi-bin)"
    done
    work=$(mktemp -d)
    two_ranks none "$work/trace" -p "$prompt" --size 1024x1024 --steps 8 --grain operation -o "$work/image.png"
    "$SMALTI" simulate --measured "$work/trace,$work/trace.1" --calibrate "$work/loopback.json"
    sed 's/"network_gbs":.*/"network_gbs": 0.125,/' "$work/loopback.json" >"$work/1gbit.json"
    echo "| strategy | a step | over 1 Gbit/s | transfers | exposed | hidden | exposed in the twin |"
    echo "|---|---|---|---|---|---|---|"
    for strategy in patch ulysses ring displaced pipeline; do
        options=(-p "$prompt" --size 1024x1024 --steps 8 --strategy "$strategy" -o "$work/image.png")
        bytes=$(two_ranks none "$work/trace" "${options[@]}" --plan --json | grep -oE '"bytes_[a-z]+":[0-9.]+|"name"' |
            awk -F: '/name/ { sum = 0; next } { sum += $2; if (sum > most) most = sum } END { print most }')
        for rate in none 1gbit; do
            two_ranks $rate "$work/$rate" "${options[@]}" 2>"$work/err" || die "$(cat "$work/err")"
        done
        fast=$(steady "$work/none") slow=$(steady "$work/1gbit")
        # the rank that waits longer
        echo "$fast $slow $(steady "$work/none.1") $(steady "$work/1gbit.1") $bytes $(twin "$strategy")" | awk -v name="$strategy" '{
            exposed = $4 - $2 > $8 - $6 ? $4 - $2 : $8 - $6
            exposed = exposed < 0 ? 0 : exposed
            transfer = $9 / 125e6
            hidden = exposed < transfer ? 1 - exposed / transfer : 0
            printf "| `%s` | %.3f s | %.3f s | %.3f s | %.3f s | %.0f %% | %.3f s |\n", name, $1, $3, transfer, exposed, 100 * hidden, $10 }'
    done
    rm -r "$work"
}
