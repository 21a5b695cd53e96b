#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Memories between which tiles really move, on one machine and without a GPU: those of StarPU's TCP/IP master-slave. Under
# every policy and with up to three slaves the bytes are those of one process; what fails in a slave fails its image; a
# slave that dies ends all, and leaves whole images.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
export STARPU_HOME=$work STARPU_WORKERS_NOBIND=1 STARPU_NTCPIPMSTHREADS=1
options=(--size 96x64 --steps 2 --tile-tokens 8 --tile-rows 4 --cpus 1 --save-latents -q)

if STARPU_TCPIP_MS_MASTER=127.0.0.1 "$SMALTI" --help >out 2>err; then
    echo 'slaves: skipped: StarPU was built without its TCP/IP master-slave'
    exit 77
fi
grep -q 'slave: STARPU_TCPIP_MS_SLAVES has to be their number' err || fail "$(cat err)"

# begin SLAVES COMMAND...: the command as a master, and its slaves; `master` and `slaves` are their processes.
begin() {
    local -x STARPU_TCPIP_MS_PORT=$((20000 + RANDOM % 10000)) STARPU_TCPIP_MS_SLAVES=$1
    timeout --foreground -k 5 900 "${@:2}" >said 2>&1 &
    master=$! slaves=()
    until grep -q "00010000 .*/tmp/starpu-$STARPU_TCPIP_MS_PORT.socket" /proc/net/unix; do
        kill -0 $master || fail "the master has not begun: $(cat said)"
        sleep 0.01
    done
    while [ ${#slaves[@]} -lt "$1" ]; do
        STARPU_TCPIP_MS_MASTER=127.0.0.1 "$SMALTI" >"slave.${#slaves[@]}" 2>&1 &
        slaves+=($!)
    done
}

# ended STATUS WORDS: the master does so, and soon the slaves.
ended() {
    local status=0
    wait $master || status=$?
    [ $status -eq "$1" ] || fail "status $status, expected $1: $(cat said slave.*)"
    grep -qF -e "$2" said || [ -z "$2" ] || fail "no '$2' in: $(cat said)"
    for slave in "${slaves[@]}"; do
        timeout 900 tail --pid="$slave" -f /dev/null || { kill -KILL "$slave" && fail 'a slave goes on without its master'; }
        wait "$slave" || [ "$1" -ne 0 ] || fail "a slave has failed: $(cat slave.*)"
    done
}

# moved TRACE: the bytes that have moved between memories, and between slaves alone.
moved() {
    python3 - "$1" <<'END_OF_PROGRAM'
import json, sys
links = json.load(open(sys.argv[1]))["transfers"]
print(*(sum(link["bytes"] for link in links if min(link["from"], link["to"]) >= least) for least in (0, 1)))
END_OF_PROGRAM
}

"$SMALTI" generate "${options[@]}" -p 'a red star' -o alone/
for count in 1 2 3; do
    for policy in lws dmdas locality; do
        begin $count "$SMALTI" generate "${options[@]}" -p 'a red star' --sched $policy --trace trace -o spread/
        ended 0 ''
        same alone spread
        read -r all between < <(moved trace)
        echo "$count slaves, $policy: $all bytes moved, $between of them between slaves"
        [ "$all" -gt 0 ] || fail "nothing has moved: $(cat trace)"
        rm -r spread
    done
done

# A task that fails in a slave, whose master has no worker itself, fails what it is of, and nothing else.
STARPU_NCPU=0 begin 1 "$(dirname "$SMALTI")/tests/slave_failure"
ended 0 'token id 2 does not exist'
grep -qx 'done' said || fail "all has failed: $(cat said)"

# A slave that dies ends the master and the other one; what is there is whole.
for i in {1..12}; do echo "a red star $i"; done >many
"$SMALTI" generate "${options[@]}" -P many -o whole/
begin 2 "$SMALTI" generate "${options[@]}" -P many -o some/
until [ -n "$(find some -name '*.png' 2>/dev/null)" ]; do
    kill -0 $master || fail "the master has ended: $(cat said)"
    sleep 0.01
done
kill -KILL "${slaves[0]}"
killed=$SECONDS
ended 134 'assert failure'
[ ! -e some/12.png ] || fail 'all was made before the slave died'
for image in some/*.png; do
    cmp "$image" "whole/${image##*/}" || fail "$image is not whole"
done
echo "a slave killed: $((SECONDS - killed)) s, $(find some -name '*.png' | wc -l) images"
