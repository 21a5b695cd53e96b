#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# smalti serve: its images are those of smalti generate to the byte, alone and with many at a time; what is wrong is
# refused with a reason; overload is answered and does not grow; clients that go away cost nothing more; signals and a
# kill -9; the page in a real browser.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"

command -v curl >/dev/null || {
    echo "SKIP: curl is needed"
    exit 77
}
cd "$work"
trap 'kill -9 $server 2>/dev/null || true; rm -rf "$work"' EXIT
server=

# start OPTION...: a server of two CPU workers at a free port; its address becomes $url.
start() {
    : >said
    "$SMALTI" serve --listen "127.0.0.1:${port:-0}" --cpus 2 "$@" >said 2>err &
    server=$!
    while ! grep -q listening said; do
        kill -0 $server 2>/dev/null || fail "serve $*: $(cat err)"
        sleep 0.05
    done
    url=$(sed -n 's/^listening on //p' said)
}

# stop [SIGNAL]: its exit status in $status.
stop() {
    status=0
    kill "-${1:-TERM}" $server
    wait $server 2>/dev/null || status=$?
}

# get STATUS PATH OPTION...: the answer is in $work/answer; a pattern can stand for the status.
get() {
    local wanted=$1 path=$2 got
    shift 2
    got=$(curl -sS -o answer -w '%{http_code}' "$@" "$url$path")
    [[ $got =~ ^$wanted$ ]] || fail "$path $*: $got instead of $wanted: $(head -c 500 answer)"
}

# ask STATUS BODY OPTION...: posts it.
ask() {
    get "$1" /v1/images/generations -H 'Content-Type: application/json' -d "$2" "${@:3}"
}

# says WORDS: the answer has these.
says() {
    grep -qF -e "$1" answer || fail "no '$1' in $(head -c 500 answer)"
}

# counts WORDS: a line of the metrics.
counts() {
    curl -sS "$url/metrics" >metrics
    grep -qxF -e "$1" metrics || fail "no '$1' in $(grep "${1%% *}" metrics)"
}

small='"size":"64x48","num_inference_steps":2'
"$SMALTI" generate -p 'a red star' --size 64x48 --steps 2 --seed 7 --images 2 -o expected/ -q

start
[ "$(curl -sS "$url/health")" = '{"status":"ok"}' ] || fail "health"
# The same image: as JSON, as a picture, as events; two of one request; a seed of its own for who names none.
ask 200 '{"prompt":"a red star","seed":7,"n":2,'"$small}"
python3 - <<'END' || fail "images of one request"
import base64, json
answer = json.load(open("answer"))
assert [image["seed"] for image in answer["data"]] == [7, 7] and answer["created"] > 1.7e9
for i, image in enumerate(answer["data"]):
    assert base64.b64decode(image["b64_json"]) == open(f"expected/1-{i}.png", "rb").read(), i
END
"$SMALTI" generate -p 'a red star' --size 64x48 --steps 2 --seed 7 -o one.png -q
ask 200 '{"prompt":"a red star","seed":7,'"$small}" -H 'Accept: image/png'
cmp answer one.png
ask 200 '{"prompt":"a red star","seed":7,"stream":true,'"$small}" -N
python3 - <<'END' || fail "events"
import base64, json
events = [dict(line.split(": ", 1) for line in block.split("\n")) for block in open("answer").read().strip().split("\n\n")]
last = events.pop()
assert last["event"] == "image_generation.completed"
assert base64.b64decode(json.loads(last["data"])["b64_json"]) == open("one.png", "rb").read()
for event in events:
    data = json.loads(event["data"])
    assert event["event"] == data["type"] == "image_generation.progress" and 0 <= data["fraction"] <= 1, event
END
ask 200 '{"prompt":"a red star",'"$small}" -H 'Accept: image/png'
if cmp -s answer one.png; then fail "no seed of its own"; fi

# From an image: a form, with the fields of a request.
golden=$SMALTI_TESTDATA/golden/img2img
form=(-F prompt='a red star' -F size=64x48 -F num_inference_steps=2 -F seed=7)
edit() {
    get "$1" /v1/images/edits "${@:2}"
}
"$SMALTI" generate -p 'a red star' --size 64x48 --steps 2 --seed 7 --image "$golden/photo.png" --strength 0.5 -o changed.png -q
edit 200 "${form[@]}" -F image=@"$golden/photo.png" -F strength=0.5 -H 'Accept: image/png'
cmp answer changed.png
"$SMALTI" generate -p 'a red star' --size 64x48 --steps 2 --seed 7 --image "$golden/photo.png" --mask "$golden/mask.png" \
    --keep-original -o painted.png -q
edit 200 "${form[@]}" -F 'image[]=@'"$golden/photo.png" -F mask=@"$golden/mask.png" -F keep_original=true -H 'Accept: image/png'
cmp answer painted.png
edit 400 "${form[@]}" && says '\"image\": expected a file'
edit 400 "${form[@]}" -F image=@"$golden/photo.png" -F image=@"$golden/photo.png" && says 'found more'
edit 400 "${form[@]}" -F image=@"$golden/cases.jsonl" && says 'image: '
edit 400 "${form[@]}" -F image=@"$golden/photo.png" -F strength=much && says 'strength'
edit 400 "${form[@]}" -F image=@"$golden/photo.png" -F seed=1 && says 'one such field'
edit 415 -H 'Content-Type: application/json' -d '{"prompt":"a"}' && says 'multipart/form-data'
edit 405 && says 'POST'
head -c 13000000 /dev/zero >large
edit 413 "${form[@]}" -F image=@large && says '12582912 bytes'
ask 400 '{"prompt":"a","image":"/etc/passwd"}' && says 'unknown key'

# What is wrong.
ask 400 'x' && says 'not valid JSON'
ask 400 '{"prompt":"a","steps":3}' && says 'unknown key'
ask 400 '{"prompt":"a","n":11}' && says '10 at most'
ask 400 '{"prompt":"a","size":"4096x64"}' && says '2048 at most'
ask 404 '{"prompt":"a","model":"dall-e-3"}' && says 'tesserae'
ask 406 '{"prompt":"a","n":2}' -H 'Accept: image/png' && says 'one image'
get 415 /v1/images/generations -d '{"prompt":"a"}' && says 'application/json'
head -c 300000 /dev/zero | tr '\0' ' ' >large
ask 413 @large && says '262144 bytes'
ask 413 @large -H 'Transfer-Encoding: chunked'
get 405 /v1/images/generations && says 'POST'
get 404 /none && says 'nothing here'
get 400 '/v1/activity?from=x' && says 'from'
get 200 /v1/models && says '"id":"tesserae"'
get 200 /v1/activity && says '"workers":["CPU 0","CPU 1"]'
get 200 / -I
grep -qi '^content-type: text/html' answer || fail "the page's head"
# What the HTTP library answers by itself is counted, too.
get 414 "/$(head -c 40000 /dev/zero | tr '\0' a)"
get 431 /health -H "X: $(head -c 40000 /dev/zero | tr '\0' a)"
counts 'smalti_http_responses_total{code="414"} 1'
counts 'smalti_http_responses_total{code="431"} 1'
counts 'smalti_images_total 7'
counts 'smalti_http_responses_total{code="404"} 2'

# Without a token a page of another site gets nothing, whatever its name leads to: each path, by name and by origin.
for path in / /health /metrics /v1/models /v1/activity /v1/images/generations /none; do
    for header in 'Host: evil.example:8000' 'Host: localhost.evil.example' 'Host:' 'Host: 10.1.2.3' 'Origin: http://evil.example' 'Origin: null'; do
        get '40[03]' "$path" -H "$header"
    done
done
ask 403 '{"prompt":"a",'"$small}" -H 'Host: evil.example:8000' && says 'localhost'
for header in 'Host: LOCALHOST:1' 'Host: 127.9.9.9' 'Host: [::1]:8000' 'Origin: http://localhost:3000'; do get 200 /metrics -H "$header"; done

# send STATUS TEXT: the status of all answers to these bytes, until the server closes the connection.
send() {
    python3 - "$url" "$1" "$2" <<'END' || fail "$2"
import re, socket, sys
host, port = re.match("http://(.*):(.*)", sys.argv[1]).groups()
with socket.create_connection((host, int(port)), timeout=60) as stream:
    stream.sendall(sys.argv[3].encode().decode("unicode_escape").encode("latin1"))
    answer = b"".join(iter(lambda: stream.recv(65536), b""))
found = re.findall(rb"HTTP/1.1 (\d+)", answer)
sys.exit(0 if set(found) == {sys.argv[2].encode()} else f"{found} instead of {sys.argv[2]}: {answer[:500]}")
END
}
# What a proxy may read otherwise is refused, and what lies behind it is no request.
post='POST /v1/images/generations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
behind='GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' # 60 bytes
for lengths in 'Content-Length: 5\r\nContent-Length: 6' 'Content-Length: 5\r\nContent-Length: 5' 'Content-Length: 4\r\nTransfer-Encoding: chunked' \
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked' 'Transfer-Encoding: gzip, chunked' 'Transfer-Encoding: identity' \
    'Content-Length : 5' 'Transfer-Encoding : chunked' 'Content-Length: 5, 5' 'Content-Length: +5' 'Content-Length: 5\r\nHost: localhost'; do
    send 400 "$post$lengths\r\n\r\n12345$behind"
done
for lengths in 'Content-Length:\r\n 60' 'Content-Length: 6\r\n 0' 'X: a\rContent-Length: 60'; do
    send 400 "$post$lengths\r\n\r\n$behind"
done
send 400 'POST /health HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
send 400 'GET /health HTTP/1.1\r\n\r\n'
send 200 'GET /health HTTP/1.0\r\n\r\n'
send 403 'GET /health HTTP/1.0\r\nHost: evil.example\r\n\r\n'

# Forty at a time: none is lost, all are the same image.
seq 120 | xargs -P 40 -I N curl -sS -o many-N.png -H 'Content-Type: application/json' -H 'Accept: image/png' \
    -d '{"prompt":"a red star","seed":7,'"$small}" "$url/v1/images/generations"
for file in many-*.png; do cmp "$file" one.png; done
[ "$(files . | grep -o "many-[0-9]*.png" | wc -l)" -eq 120 ] || fail "images were lost"

# Who goes away is not waited for: of 30 images that would take minutes most are dropped.
for _ in 1 2 3; do
    timeout 1 curl -sS -o gone -H 'Content-Type: application/json' \
        -d '{"prompt":"a","n":10,"num_inference_steps":100,"size":"512x512"}' "$url/v1/images/generations" && fail "so fast"
done
ask 200 '{"prompt":"a red star","seed":7,'"$small}" -H 'Accept: image/png'
cmp answer one.png
curl -sS "$url/metrics" >metrics
dropped=$(sed -n 's/^smalti_images_dropped_total //p' metrics)
[ "$dropped" -ge 20 ] || fail "$dropped of 30 images were dropped"

if command -v chromium >/dev/null; then
    # A person types a prompt, presses the button and sees the image; then one that is refused.
    python3 "$tests/browser.py" "$url/#a%20red%20star" '(async () => {
        const until = async test => { for (let i = 0; i < 600 && !test(); i++) await new Promise(go => setTimeout(go, 100)); };
        await until(() => document.getElementById("model").textContent);
        const set = (id, value) => document.getElementById(id).value = value;
        set("size", "64x48"); set("steps", 2); set("seed", "18446744073709551615");
        document.getElementById("go").click();
        await until(() => document.querySelector("figure img") && document.querySelector("figure img").complete);
        await until(() => document.getElementById("state").textContent.startsWith("done"));
        const image = document.querySelector("figure img"), caption = document.querySelector("figcaption").textContent;
        const legend = document.getElementById("legend");
        await until(() => legend.textContent.includes("matmul"));
        set("count", 2); set("seed", 7);
        document.getElementById("go").click();
        await until(() => document.querySelectorAll("figure").length === 3);
        await until(() => document.getElementById("state").textContent.startsWith("done"));
        const captions = [...document.querySelectorAll("figcaption")].slice(0, 2).map(one => one.textContent).sort().join();
        const fits = document.documentElement.scrollWidth <= document.documentElement.clientWidth;
        set("count", 11);
        document.getElementById("go").click();
        await until(() => document.getElementById("state").className);
        return [document.getElementById("model").textContent, image.naturalWidth + "x" + image.naturalHeight, caption,
            legend.textContent.includes("matmul"), captions, fits, document.getElementById("state").textContent].join("|");
    })()' ${SMALTI_TEST_SCREENSHOT:+"$SMALTI_TEST_SCREENSHOT"} >shown
    grep -qxF 'tesserae|64x48|a red star (seed 18446744073709551615)|true|a red star (seed 7, image 1 of 2),a red star (seed 7, image 2 of 2)|true|"n" is 11, but this server allows 10 at most' shown ||
        fail "the page: $(cat shown)"
fi

# Killed in work: a new one takes its port at once.
port=${url##*:}
curl -sS -o gone -H 'Content-Type: application/json' -d '{"prompt":"a","num_inference_steps":100}' "$url/v1/images/generations" &
sleep 0.2
stop KILL
wait || true
printf 'a secret token\n' >token
start --token-file token --max-waiting 6 --max-waiting-of-client 4 --max-images 4 --rate 3
[ "$(curl -sS "$url/health")" = '{"status":"ok"}' ] || fail "health after a kill"
ask 401 '{"prompt":"a"}' && says 'Bearer'
ask 401 '{"prompt":"a"}' -H 'Authorization: Bearer a secret toke' && says 'Bearer'
ask 401 '{"prompt":"a"}' -H 'Authorization: Bearer A secret token' && says 'Bearer'
for scheme in bearer BEARER 'Bearer '; do get 200 /v1/models -H "Authorization: $scheme a secret token"; done
get 200 /v1/models -H 'Authorization: Bearer a secret token' -H 'Host: images.example' -H 'Origin: https://images.example'
ask 200 '{"prompt":"a red star","seed":7,'"$small}" -H 'Authorization: Bearer a secret token' -H 'Accept: image/png'
cmp answer one.png
get 401 /metrics
for _ in 1 2; do ask 200 '{"prompt":"a",'"$small}" -H 'Authorization: Bearer a secret token'; done
ask 429 '{"prompt":"a",'"$small}" -H 'Authorization: Bearer a secret token' && says 'in a minute'
stop
[ "$status" -eq 0 ] || fail "SIGTERM while idle: $status: $(cat err)"

# Overload: what is answered is an image, 429 or 503; SIGTERM finishes what is in work.
start --max-waiting 12 --max-waiting-of-client 8 --max-images 2
seq 60 | xargs -P 60 -I N curl -sS -o over-N -w '%{http_code}\n' -H 'Content-Type: application/json' \
    -d '{"prompt":"a red star","seed":7,"n":2,"size":"256x256"}' "$url/v1/images/generations" >codes &
load=$!
until curl -sS -o metrics "$url/metrics" && grep -q 'code="429"} [1-9]' metrics; do
    kill -0 $load 2>/dev/null || fail "no request was refused: $(sort codes | uniq -c)"
    sleep 0.05
done
stop
wait $load || true
[ "$status" -eq 0 ] || fail "SIGTERM in work: $status: $(cat err)"
if grep -qvE '^(200|429|503)$' codes; then fail "$(sort codes | uniq -c)"; fi
grep -q 429 codes || fail "$(sort codes | uniq -c)"
grep -q 200 codes || fail "what was in work was not finished: $(sort codes | uniq -c)"

# One server for a port: not the kernel's lot decides which of two models answers.
start
refuse 1 'Address already in use' timeout 900 "$SMALTI" serve --cpus 2 --listen "127.0.0.1:$port"
refuse 1 'Address already in use' timeout 900 "$SMALTI" serve --cpus 2 --listen "0.0.0.0:$port" --token-file token
stop

# What can never be is not to be asked for again: an image beyond the memory, and more images than may wait.
start --memory-limit 300M --max-waiting-of-client 3
ask 400 '{"prompt":"a","size":"1024x1024"}' -D head && says '300 MB are allowed'
if grep -qi '^retry-after' head; then fail "an image that never fits: $(cat head)"; fi
ask 400 '{"prompt":"a","n":4,'"$small}" && says '3 at most'
get 200 '/v1/activity?from=1000000' && says '"next":0'
stop

refuse 2 '--trace' timeout 900 "$SMALTI" serve --trace trace.json # it would grow for as long as the server runs
refuse 2 '--token-file' "$SMALTI" serve --listen 0.0.0.0:0
refuse 2 '127.0.0.1:8000 or [::1]:8000' "$SMALTI" serve --listen nowhere
refuse 2 'unexpected operand' "$SMALTI" serve now
echo short >token
refuse 2 '8 characters' "$SMALTI" serve --token-file token
