#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti extract` on a data set with every kind of bad item: each is reported, all others are done.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
"$(dirname "$SMALTI")/tests/make_bad_dataset" set
list=set/InternData/data_info.json

# failures FILE: index, stage and key of each line of a failed.jsonl, as set/failed has them.
failures() {
    sed -E 's/^\{"index":([0-9]+),"key":"([^"]*)","stage":"([a-z0-9]+)",.*$/\1\t\3\t\2/' "$1" | sort -n
}

extract() {
    timeout 900 "$SMALTI" extract "$list" --img-size 256 --caption-key prompt "$@"
}

expect 3 '' extract -o features
diff set/failed <(failures features/failed.jsonl) || fail "the report is wrong"

# What failed is all that a second run has to do, and it fails again.
expect 3 '' extract -o features
diff set/failed <(failures features/failed.jsonl) || fail "the second report is wrong"

# Text alone fails where captions do; images alone where images do.
expect 3 '' extract --t5 -o text
diff <(grep -v picture set/failed) <(failures text/failed.jsonl) || fail "the report on text is wrong"
expect 3 '' extract --vae -o images
diff <(grep -v caption set/failed) <(failures images/failed.jsonl) || fail "the report on images is wrong"

# What was missing appears: retried, it is no failure any more.
cp set/InternImgs/good.png set/InternImgs/missing.png
expect 3 '' extract --retry-failed -o features
diff <(grep -v missing set/failed) <(failures features/failed.jsonl) || fail "the retry's report is wrong"
