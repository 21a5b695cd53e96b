#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# smalti serve among clients that mean harm: who goes leaves the queue, one image does not wait for many, and while some send
# nothing, dribble, close, send without end, or garbage, no ordinary request is lost, and memory stays.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"

cd "$work"
# serve [VARIABLE=VALUE]: starts it.
serve() {
    : >said # which names the port of the server before
    env "$@" "$SMALTI" serve --listen 127.0.0.1:0 --cpus 2 --max-images 100 --max-waiting 500 --max-waiting-of-client 100 >said 2>err &
    server=$!
    while ! grep -q listening said; do
        kill -0 "$server" 2>/dev/null || fail "$(cat err)"
        sleep 0.05
    done
}
trap 'kill -9 $server 2>/dev/null || true; rm -rf "$work"' EXIT
serve
seconds=15
[ -z "${SMALTI_TEST_FULL:-}" ] || seconds=600
megabytes=100
if sanitized; then megabytes=1000; fi # what is freed is kept for a while
python3 "$tests/serve_soak.py" "$(sed 's/.*://' said)" $server $seconds $megabytes || fail "$(cat err)"
wait $server || fail "status $?: $(cat err)"

# It is told to stop before it has seen that images have begun.
if ! sanitized; then # which wants no library before its own
    serve LD_PRELOAD="$(dirname "$SMALTI")/.libs/liblatenaps.so"
    python3 "$tests/serve_soak.py" "$(sed 's/.*://' said)" "$server" 0 "$megabytes" || fail "$(cat err)"
    wait "$server" || fail "status $?: $(cat err)"
fi
