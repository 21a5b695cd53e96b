#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The smallest case of every operation of devices under Oclgrind, which sees races between the threads of a group and accesses
# out of bounds. SMALTI_TEST_FULL=1: all cases.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
program=$(dirname "$SMALTI")/tests/test_devices

skip() {
    echo "SKIPPED: $*"
    exit 77
}
command -v oclgrind >/dev/null || skip "oclgrind is not installed (Debian: oclgrind)"
if sanitized; then
    skip "oclgrind's library cannot come before AddressSanitizer"
fi

export STARPU_HOME=$work SMALTI_TEST='operations on devices'
[ -n "${SMALTI_TEST_FULL:-}" ] || export SMALTI_TEST_SMALLEST=1
status=0
oclgrind --data-races --log "$work/log" "$program" >"$work/out" 2>&1 || status=$?
# Oclgrind itself was seen to abort while the program exits, behind its summary: that is no kernel's fault.
if [ $status -ne 0 ]; then
    grep -qE '^ +asserts +([0-9]+) +\1 +\1 +0 ' "$work/out" || fail "$(head -c 2000 "$work/log" "$work/out")"
    echo "Oclgrind ended with status $status behind the last test"
fi
[ ! -s "$work/log" ] || fail "$(head -c 4000 "$work/log")"
grep -q '[1-9][0-9]* cases' "$work/out" || skip "$(grep skipped "$work/out")"
