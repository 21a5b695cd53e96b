#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti report`: one page that stands alone, whatever the keys and logs say.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

report() {
    timeout 900 "$SMALTI" report "$@"
}

# log NAME HOST BEGAN LAST: of a process that made ten items a second.
log() {
    {
        printf '{"run":1,"program":"smalti","host":"%s","pid":7,"began":%s,"policy":"lws",' "$2" "$3"
        printf '"workers":["CPU 0","<i>"],"options":{"o":"</pre><script>alert(1)</script>"}}\n'
        for t in 1 2 3; do
            printf '{"t":%d,"resident":%d,"items":%d,"captions":%d,"tokens":%d,"pictures":%d,"pixels":%d,' \
                $t $((t << 20)) $((t * 10)) $((t * 10)) $((t * 100)) $((t * 10)) $((t * 655360))
            printf '"failures":0,"rows":0,"bytes":0,"waiting":1,"computing":2,"finished":3,"text":%d,' $t
            printf '"decode":%d,"vae":%d,"write":%d,"busy":[%d,0]}\n' $t $t $t $t
        done
        printf '{"t":3,"devices":[{"name":"<b>GPU","busy":0.5,"bytes_to":3145728,"exposed":"x","memory":1e999}]}\n'
        printf '{"t":3,"predicted":{"machine":"<b>32","seconds":2.5,"measured":3}}\n'
        printf '{"t":3,"lengths":[[3,10],[30,20]],"bins":[[256,256,30]]}\n%s' "$4"
    } >"features/runs/$1.jsonl"
}

"${SMALTI%/*}/tests/make_directory" features f16 prompt 4 3 1 <<'END'
a.png
</td><script>alert(1)</script>.png
c&d.png
END

# Before anything is logged, then with three processes: two at a time, one that was killed, one of another day.
rm -rf features/runs
expect 0 '' report features -o page.html
cp page.html before.html
mkdir features/runs
log a node-1 1700000000 '{"t":3,"end":"finished"}'
log b '<b>node' 1700000001.5 '{"t":3,"it'
log c node-1 1700086400 '{"t":3,"end":"stopped"}'
echo nonsense >features/runs/d.jsonl
printf '{"run":1,"host":"idle","pid":9,"began":1700200000,"workers":[]}\n{"t":1,"end":"finished"}\n' >features/runs/e.jsonl
echo hidden >features/runs/.e.jsonl
expect 0 '' report features
mv report.html page.html
[ -z "$(cat err out)" ] || fail "it says $(cat err out)"
# Nothing is loaded from elsewhere, and no text of the data is markup.
sed '/^\/\*!$/,/^<\/script>$/d' page.html >own.html
[ $(($(wc -c <page.html) - $(wc -c <own.html))) -gt 100000 ] || fail "there is no Chart.js"
for words in 'src=' 'href=' 'url(' '@import' 'http:' '@DATA@' '@CHART@' 'innerHTML' '<i>' '<b>node' 'nan' 'inf,'; do
    if grep -qF -e "$words" own.html; then fail "there is $words"; fi
done
[ "$(grep -c '<script' page.html)" -eq 3 ] || fail "the data has scripts"
python3 - <<'END' || fail "data"
import json, re
page = open("page.html", encoding="utf-8").read()
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])
assert data["report"] == "extraction" and data["folder"] == "features" and data["rows"] == 3, data
assert [run["end"] for run in data["runs"]] == ["finished", "", "stopped", "finished"], data
assert data["runs"][1]["host"] == "<b>node" and data["runs"][1]["unreadable"] == 1
assert data["runs"][0]["points"][2][:3] == [3, 3 << 20, 30] and data["runs"][0]["busy"] == [[1, 0], [2, 0], [3, 0]]
assert data["runs"][0]["lengths"] == [[3, 10], [30, 20]] and data["runs"][0]["bins"] == [[256, 256, 30]]
assert data["runs"][0]["predicted"] == ["<b>32", 2.5, 3]
assert data["runs"][0]["devices"] == [{"busy": 0.5, "bytes_to": 3 << 20, "name": "<b>GPU"}]
assert "alert(1)" in data["runs"][0]["options"] and data["unreadable"] == 1
assert data["failures"]["groups"][0]["stage"] == "picture", data["failures"]
END

# shown PAGE WORDS...: what a browser makes of the page has these words.
shown() {
    local page=$1 words
    shift
    timeout 900 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" \
        --virtual-time-budget=5000 --dump-dom "file://$work/$page" >dom.html 2>browser.log ||
        fail "chromium: $(tail -n 3 browser.log)"
    sed -n '/<h1>/,$p' dom.html >body.html
    for words in "$@"; do
        grep -qF -e "$words" body.html || fail "no $words in $page"
    done
}
if command -v chromium >/dev/null; then
    shown before.html 'no log of any process'
    shown page.html '>2023-11-14 22:13:20 UTC<' '2 processes' '1 process<' 'node-1:7' '&lt;b&gt;node:7' '>stopped<' \
        'Tokens per second: all together up to 200' 'Pixels per second' 'Memory: all together up to 4 MiB' \
        'Items per second: all together up to 20' 'Queues: items: waiting for their bytes up to 1' \
        'Stages: threads at work: T5 up to 1' 'CPU 0 100 %' 'Caption lengths: 3: 30, 30: 60' 'Bins: 256×256: 90' \
        '&lt;i&gt; 0 %' '1 files in runs/' '1 lines of its log' '<td class="">picture</td>' 'a &lt;b&gt;test' \
        '<code>&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;.png</code>' '&lt;/pre&gt;&lt;script&gt;' \
        'no end: killed, or still at work' '>&lt;b&gt;GPU<' '>50 %<' '>3 MiB<'
    [ "$(grep -o 'idle:9' body.html | wc -l)" -eq 1 ] || fail "what did nothing has charts"
    if grep -qE 'NaN|undefined|Infinity' body.html; then fail "there are numbers that are none"; fi

    # 10 items a second for 4 seconds, then 20; memory is the largest of its time, not of all points.
    cp -r features rated
    rm rated/runs/*
    {
        printf '{"run":1,"host":"h","pid":7,"began":1000,"workers":["CPU 0"]}\n'
        while read -r t items memory busy; do
            printf '{"t":%s,"resident":%s,"items":%s,"captions":0,"tokens":0,"pictures":0,"pixels":0,' "$t" "$memory" "$items"
            printf '"failures":0,"rows":0,"bytes":0,"waiting":0,"computing":0,"finished":0,"text":0,'
            printf '"decode":0,"vae":0,"write":0,"busy":[%s]}\n' "$busy"
        done <<<'0 0 100 0
4 40 900 4
8 120 300 4'
    } >rated/runs/a.jsonl
    report rated -o rates.html
    shown rates.html 'Items per second: all together up to 20.0"' 'up to 900 B"' 'CPU 0 50 %"' '15</b>'
fi
report features -o - | cmp - page.html

# A training run: what a process did that was killed, and the next one did again, is there once.
step() {
    printf '{"step":%d,"epoch":0,"samples":2,"loss":%s,"mse":%s,"vb":0,"norm":3,"lr":0.5,"scale":1,"tflops":0.002,' "$1" "$2" "$2"
    printf '"seconds":2,"samples_per_second":4,"data_seconds":0.5,"update_seconds":0.5,"resident":%d,' $((1 << 20))
    printf '"moved":0,"busy":[1,0]}\n'
}
mkdir trained
{
    echo '{"training":1,"program":"smalti 0","from":0,"workers":["CPU 0","<i>"],"identity":{"a":"</pre><script>"}}'
    step 1 9 && step 2 7 && step 3 1e999
    echo '{"step":3,"evaluation":"ema","mean_mse":5,"mean_vb":6}'
    echo '{"failed":"<b>once"}'
    echo '{"training":1,"program":"smalti 0","from":1,"steps":10,"workers":["CPU 0","<i>"],"identity":{"a":"</pre><script>"}}'
    step 2 8 && step 4 6
    echo '{"step":4,"evaluation":"ema","mean_mse":4,"mean_vb":6}'
    echo '{"checkpoint":"step-4"}'
    printf '{"operations":[{"name":"<b>op","dtype":"bf16","count":2,"seconds":3,"flops":6e9,"bytes":1048576},{"name":"short"},7,'
    echo '{"name":"convert","dtype":"f32","count":1,"seconds":1,"flops":0,"bytes":2048}]}'
    echo '{"devices":[{"name":"<b>GPU","bytes_to":3145728}]}'
    printf '{"step":5,"lo'
} >trained/log.jsonl
expect 0 'trained: step 4 of 10, 2 s a step, not running' report trained -o trained.html
python3 - <<'END' || fail "a training run's data"
import json, re
page = open("trained.html", encoding="utf-8").read()
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])
assert data["report"] == "training" and data["processes"] == 2 and data["unreadable"] == 1 and data["failed"] == "", data
assert [point[:2] for point in data["points"]] == [[1, 9], [2, 8], [4, 6]] and data["busy"] == [[.5, 0]] * 3, data
assert data["evaluations"] == [["ema", 4, 4, 6]] and data["checkpoint"] == "step-4", data
assert data["workers"] == ["CPU 0", "<i>"] and data["devices"] == [{"bytes_to": 3 << 20, "name": "<b>GPU"}], data
assert data["pace"] == [10, .5, None], data
assert [one["name"] for one in data["operations"]] == ["<b>op", "convert"] and data["operations"][0]["flops"] == 6e9, data
END
# Begun again for fewer steps than it has.
mkdir fewer
sed 's/"steps":10/"steps":2/' trained/log.jsonl >fewer/log.jsonl
expect 0 'fewer: step 4 of 4, 2 s a step, not running' report fewer -o fewer.html
# While somebody trains in it: six steps are left, at the speed of the last process's.
python3 - "$SMALTI" <<'END' || fail "a training run's time left"
import fcntl, json, re, subprocess, sys
with open("trained/.lock", "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    said = subprocess.run([sys.argv[1], "report", "trained", "-o", "live.html"], stderr=subprocess.PIPE, check=True).stderr
page = open("live.html", encoding="utf-8").read()
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])
assert data["pace"] == [10, .5, 12], data
assert said == b"trained: step 4 of 10, 2 s a step, 12 s left\n", said
END
if command -v chromium >/dev/null; then
    shown live.html '>12 s<' '>left, as fast as in the last minute<' '>steps of 10<' '>a step, of late<'
    shown trained.html '>Training in trained<' '>6<' '>step-4<' 'Loss: loss up to 9, mean' 'Samples per second up to 4' \
        'ema up to 4' 'CPU 0 50 %' '&lt;i&gt; 0 %' '1 lines of log.jsonl' '&lt;/pre&gt;&lt;script&gt;' '>&lt;b&gt;GPU<' '>3 MiB<' \
        'bf16: 75.0 % of the time; conversions: 25.0 %' '>&lt;b&gt;op<' '>2G<'
    if grep -qE 'NaN|undefined|Infinity' body.html; then fail "there are numbers that are none"; fi
fi

# Images of samples are on the page, but for those that a link leads out to.
mkdir -p drawn/samples/step-{1,2}
cp trained/log.jsonl drawn
"$SMALTI" generate -p 'a star' -s 16x16 --steps 1 -q -o drawn/samples/step-1/1.png
mv drawn/samples/step-1/1.png outside.png
cp outside.png drawn/samples/step-1
ln -s outside.png drawn/samples/step-1/1.png
ln -s "$PWD/outside.png" drawn/samples/step-2/1.png
report drawn -o drawn.html
[ "$(grep -o '"image":"data:image/png' drawn.html | wc -l)" -eq 1 ] || fail "images of samples"

# Written again until a signal comes, and the page loads itself again.
"$SMALTI" report trained -o again.html --every 1 &
watcher=$!
for ((i = 0; i < 300; i++)); do
    [ ! -e again.html ] || break
    sleep 0.1
done
cp again.html first.html
{ echo && step 6 5; } >>trained/log.jsonl
for ((i = 0; i < 300; i++)); do
    ! cmp -s again.html first.html || sleep 0.1
done
cmp -s again.html first.html && fail "the page was written once"
grep -q '"every":1,' again.html || fail "the page stays as it is"
kill -INT $watcher
status=0
wait $watcher || status=$?
[ $status -eq 0 ] || fail "status $status after SIGINT"
refuse 2 'needs a file' report trained -o - --every 1

# What is wrong is said in one line; what was there stays.
mkdir empty
refuse 2 'name one directory' report
refuse 2 'name one directory' report a b
refuse 1 'empty: neither a directory of features nor a run' report empty -o page.html
refuse 1 'missing: neither a directory of features nor a run' report missing -o page.html
refuse 1 'cannot be created' report features -o missing/page.html
limited() {
    (
        ulimit -f 1
        exec "$@"
    )
}
refuse 1 'cannot be written' limited "$SMALTI" report features -o page.html
report features -o - | cmp - page.html
[[ "$(files .)" != *.part* ]] || fail "left $(files .)"
to_full_disk() {
    "$@" >/dev/full
}
expect 1 'No space left' to_full_disk "$SMALTI" report features -o -
