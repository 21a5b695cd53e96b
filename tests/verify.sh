#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti verify`: what it says of a directory of features, its statuses, and what a repair leaves to be done.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
worker=$(dirname "$SMALTI")/tests/store_worker
says() { # WORDS: in what was printed
    grep -qF -e "$1" out || fail "no '$1' in: $(cat out)"
}

"$worker" fill features 60 20
expect 0 '' "$SMALTI" verify features
says 'features: 3 shards, 60 items (3 failed), '
says 'all is well'
expect 0 '' "$SMALTI" verify --quiet features
[ ! -s out ] || fail "words when all is well: $(cat out)"
expect 0 '' "$SMALTI" verify --json features
says '"well":'
says '"problems":'

# Beside processes at work: what is not finished is no damage.
for _ in 1 2; do "$worker" fill busy 1500 10 800 & done
looks=0
until [ -e busy/extract.json ]; do sleep 0.01; done
while [ -n "$(jobs -r)" ]; do
    if "$SMALTI" verify -q busy >found 2>&1; then continue; fi
    if grep -vE 'manifest.json: is not there|are not committed' found; then fail "false alarms: $(cat found)"; fi
    looks=$((looks + 1))
done
wait
[ $looks -gt 3 ] || fail "looked $looks times only"
expect 0 '' "$SMALTI" verify busy

refuse 2 'expected one directory' "$SMALTI" verify
refuse 2 'expected one directory' "$SMALTI" verify features features
# One is no plural.
"$worker" fill single 1 20
expect 0 '' "$SMALTI" verify single
says 'single: 1 shard, 1 item ('
mkdir empty
refuse 1 'no directory of features' "$SMALTI" verify empty
refuse 1 'no directory of features' "$SMALTI" verify absent

# A key in the middle shard: its row is named.
shard=features/shard-000000000020-000000000040.h5
key=$("$worker" dump features | sed -n '28s/^[0-9]* \(.*\) [0-9a-f]*$/\1/p')
place=$(grep -obUaF -e "$key" "$shard" | head -n 1 | cut -d: -f1)
printf '\377' | dd of="$shard" bs=1 seek=$((place + 7)) conv=notrunc status=none
expect 1 '' "$SMALTI" verify features
says "shard-000000000020-000000000040.h5: row 27 ("
says '1 problem'
expect 1 '' "$SMALTI" verify --json features
says '"row":	27'
[ "$(iconv -f UTF-8 -t UTF-8 out | wc -c)" -eq "$(wc -c <out)" ] || fail "not UTF-8: $(cat out)"
expect 0 '' "$SMALTI" verify --repair features
says '20 items have to be made again'
says '1 problem; repaired; 20 items'
if [ ! -e "$shard.broken" ] || [ -e "$shard" ]; then
    fail "after the repair: $(files features)"
fi
expect 1 '' "$SMALTI" verify features
says 'items 20 to 39 are not committed'
"$worker" fill features 60 20
expect 0 '' "$SMALTI" verify features
says 'all is well'
