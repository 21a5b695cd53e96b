#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever happens at any call that touches the directory where a command works (it is killed or stopped there, the call
# fails, the disk is full), the same command brings the directory to where it would have been without. SMALTI_TEST_FULL=1
# takes every call, else some.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
RANDOM=1 # the same samples each time
tools=$(dirname "$SMALTI")/tests
fault=$(dirname "$SMALTI")/.libs/libfault.so
if sanitized; then
    echo "SKIPPED: a library cannot come before AddressSanitizer"
    exit 77
fi

# disturbed FAULT COMMAND...: its status, 137 if it was killed; what is stopped goes on. Its words go to err.
disturbed() {
    local status=0
    SMALTI_FAULT=$1 SMALTI_FAULT_IN=made SMALTI_FAULT_COUNT=$work/count LD_PRELOAD=$fault "${@:2}" >said 2>err &
    local process=$!
    if [ "${1%:*}" = any-stop ]; then
        while read -r _ _ state _ <"/proc/$process/stat" && [ "$state" != Z ]; do
            if [ "$state" = T ]; then kill -CONT $process; fi
            sleep 0.01
        done 2>/dev/null
    fi
    { wait $process || status=$?; } 2>/dev/null
    return $status
}

# survives NAME SAMPLES PREPARE COMPARE OK COMMAND...: faults at the first and SAMPLES other calls of the command, and at
# every fsync. It works in the directory made, ends with the status OK if nobody disturbs it and leaves what COMPARE
# accepts. PREPARE makes what it begins with.
survives() {
    local name=$1 samples=$2 prepare=$3 compare=$4 ok=$5 runs=0
    shift 5
    for kind in sync any-kill any-eio any-enospc any-stop; do
        rm -rf made
        $prepare
        local status=0
        disturbed $kind:0 "$@" || status=$?
        [ $status -eq "$ok" ] || fail "$name: status $status: $(cat err)"
        $compare || fail "$name: not right when nobody disturbs it"
        local calls step=1 number
        calls=$(cat count)
        [ -n "${SMALTI_TEST_FULL:-}" ] || [ $kind = sync ] || step=$((calls / samples + 1))
        for ((number = 1; number <= calls; number += number > 1 ? step : 1 + RANDOM % step)); do
            rm -rf made
            $prepare
            local what="$name, SMALTI_FAULT=$kind:$number of $calls"
            status=0
            disturbed $kind:$number "$@" || status=$?
            cp err first
            case $kind:$status in
            any-kill:137 | any-stop:"$ok" | *:"$ok" | any-e*:[13] | sync:[13]) ;;
            *) fail "$what: status $status: $(cat first)" ;;
            esac
            [ $status -ne "$ok" ] || $compare || fail "$what: it said that all was well: $(cat first)"
            status=0
            "$@" >said 2>err || status=$?
            [ $status -eq "$ok" ] || fail "$what: then status $status: $(cat err); before: $(cat first)"
            $compare || fail "$what: $(cat first); then: $(cat differences)"
            local left # a claim that could not be removed is nobody's; the next run takes it away
            left=$(find made -name '*.part' -o -path 'made/claims/*' -o -path 'made/.share/claims/*')
            [ -z "$left" ] || fail "$what: left $left"
            runs=$((runs + 1))
        done
    done
    [ $runs -gt 0 ] || fail "$name: no calls in the directory"
    echo "$name: $runs faults"
}

# Images of a list that processes share.
for i in {0..2}; do echo "{\"prompt\": \"a red star\", \"seed\": $i}"; done >prompts.jsonl
generate=("$SMALTI" generate -P prompts.jsonl --steps 1 -s 16x16 --cpus 1 -q --save-latents)
expect 0 '' "${generate[@]}" -o whole-images/
is_generated() { diff -r -x .share whole-images made >differences 2>&1; }
survives 'generate --share' 5 : is_generated 0 "${generate[@]}" --share -o made/

