#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of `smalti serve` that mean harm, beside ordinary ones of which none may be lost.

Usage: serve_soak.py PORT PID SECONDS MEGABYTES (by which memory may grow; 0 seconds: only what happens at the end)
"""

import contextlib
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import sys
import threading
import time

PORT, PID = int(sys.argv[1]), int(sys.argv[2])
SECONDS, MEGABYTES = float(sys.argv[3]), float(sys.argv[4])
PATIENCE = 120  # for what should take a second or so, on a machine that has much else to do
CONNECTIONS = 450  # of an address that opens as many as it can


def connect(source):
    stream = socket.create_connection(("127.0.0.1", PORT), timeout=PATIENCE, source_address=(source, 0))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def head(path, more=""):
    return f"{'GET' if path != '/v1/images/generations' else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n{more}".encode()


def ask(source, more="", **fields):
    """Sends a request for images; the connection."""
    body = json.dumps({"prompt": "a red star", "seed": 7, "size": "16x16", "num_inference_steps": 1, **fields}).encode()
    stream = connect(source)
    stream.sendall(head("/v1/images/generations", f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                        f"Connection: close\r\n{more}\r\n") + body)
    return stream


def get(path, source="127.0.0.9"):
    with connect(source) as stream:
        stream.sendall(head(path, "Connection: close\r\n\r\n"))
        return answer(stream)


def answer(stream):
    """The status and the body of what is sent until the connection is closed."""
    text = b"".join(iter(lambda: stream.recv(1 << 16), b""))
    while text.startswith(b"HTTP/1.1 100 "):
        text = text.partition(b"\r\n\r\n")[2]
    first, _, body = text.partition(b"\r\n\r\n")
    return int(first.split()[1]) if first else 0, body


def metric(name):
    return float(re.search(rf"^{name} (\S+)$", get("/metrics")[1].decode(), re.M).group(1))


def until(what, test):
    end = time.monotonic() + PATIENCE
    while not test():
        if time.monotonic() > end:
            sys.exit(f"serve_soak.py: waited in vain: {what}")
        time.sleep(0.05)


def check(what, passed):
    if not passed:
        sys.exit(f"serve_soak.py: {what}")


def files():
    return len(os.listdir(f"/proc/{PID}/fd"))


def resident():
    with open(f"/proc/{PID}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s*(\d+)", file.read()).group(1)) / 1024


def who_goes_leaves_the_queue():
    """While images that would take minutes are in work; then these end, too, and none was made."""
    made = metric("smalti_images_total")
    large = ask("127.0.0.2", n=10, size="1024x1024", num_inference_steps=100)
    until("images in work", lambda: metric("smalti_images_active") > 0)
    before = metric("smalti_images_waiting")
    half, stream = ask("127.0.0.3"), ask("127.0.0.3", stream=True)
    for one in half, stream:
        one.shutdown(socket.SHUT_WR)  # these wait on
    behind = [ask("127.0.0.4", stream=i % 2 == 0) for i in range(40)]
    until("the queue", lambda: metric("smalti_images_waiting") >= before + 42)
    for i, one in enumerate(behind):
        if i % 4 == 3:
            one.shutdown(socket.SHUT_WR)  # first the half, then all of it
        one.close()
    until("those who have gone to leave the queue", lambda: metric("smalti_images_waiting") <= before + 2)
    check("images were made meanwhile", metric("smalti_images_total") == made)
    large.close()
    status, body = answer(half)
    check("an answer to who has closed its sending half", status == 200 and b"b64_json" in body)
    status, body = answer(stream)
    check("the same with events", status == 200 and b"image_generation.completed" in body)
    until("what nobody waits for to end", lambda: metric("smalti_images_active") == 0)
    check("images were made for nobody", metric("smalti_images_total") == made + 2)


def one_image_does_not_wait_for_many():
    made = metric("smalti_images_total")
    many = ask("127.0.0.2", n=60, size="128x128", num_inference_steps=20)
    until("the first of many", lambda: metric("smalti_images_total") > made)
    for source in "127.0.0.3", "127.0.0.2":
        check("one image", answer(ask(source))[0] == 200)
        check("it came behind many", metric("smalti_images_total") < made + 60)
    many.close()


class Hostile:
    """One way to be a nuisance, in a thread of its own until the end."""
    over = threading.Event()
    held = []

    def __init__(self, number, way):
        self.source = f"127.0.2.{number}"
        self.random = random.Random(number)
        self.way = way
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over.is_set():
            with contextlib.suppress(OSError):
                self.way(self)
            time.sleep(0.02)

    def silent(self):
        Hostile.held.append(connect(self.source))
        time.sleep(0.1)

    def dribbles_a_head(self):
        with connect(self.source) as stream:
            stream.sendall(b"GET /health HTTP/1.1\r\nX: ")
            while not self.over.is_set():
                stream.sendall(b"a")
                time.sleep(0.5)

    def dribbles_a_body(self):
        with connect(self.source) as stream:
            stream.sendall(head("/v1/images/generations", "Content-Type: application/json\r\nContent-Length: 10000\r\n\r\n{"))
            while not self.over.is_set():
                stream.sendall(b" ")
                time.sleep(0.5)

    def closes(self):
        stream = ask(self.source, n=5, stream=self.random.random() < 0.5)
        if self.random.random() < 0.5:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(self.random.random() * 0.1)
        stream.close()

    def sends_without_end(self):
        with connect(self.source) as stream:
            length = self.random.choice(("Content-Length: 10000000000", "Transfer-Encoding: chunked"))
            stream.sendall(head("/v1/images/generations", f"Content-Type: application/json\r\n{length}\r\n\r\n"))
            while not self.over.is_set():
                stream.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")

    def sends_garbage(self):
        with connect(self.source) as stream:
            stream.sendall(self.random.choice((b"", head("/"), head("/", "Content-Length: 99999999999999999999999\r\n\r\n"),
                                               head("/" + "a" * 40000), head("/", "a:" * 40000))) + self.random.randbytes(500))
            stream.shutdown(socket.SHUT_WR)
            answer(stream)

    def comes_from_elsewhere(self):
        with connect(self.source) as stream:
            stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
            check("a foreign Host", answer(stream)[0] == 403)

    def asks_for_much(self):
        with ask(self.source, n=20, size="64x64") as stream:
            answer(stream)

    def does_not_read(self):
        Hostile.held.append(ask(self.source, n=20))
        time.sleep(2)


def shut_everybody_out():
    """As many connections as there may be, from two addresses, whose heads never end."""
    streams = []
    with contextlib.suppress(OSError):
        for i in range(2 * CONNECTIONS):
            stream = connect(f"127.0.3.{1 + i // CONNECTIONS}")
            streams.append(stream)
            stream.sendall(b"GET / HTTP/1.1\r\nX: ")
            if i % 100 == 99:
                check("others are answered", get("/health")[0] == 200)
    return streams


def dribble(streams):
    while not Hostile.over.is_set():
        for stream in streams:
            with contextlib.suppress(OSError):
                stream.send(b"a")
        time.sleep(1)


def ordinary(source, expected, times, failures):
    while not Hostile.over.is_set():
        began = time.monotonic()
        try:
            with ask(source) as stream:
                status, body = answer(stream)
            if status != 200 or json.loads(body)["data"] != expected:
                failures.append(f"{status}: {body[:200]}")
        except OSError as failure:
            failures.append(repr(failure))
        times.append(time.monotonic() - began)


def soak():
    expected = json.loads(answer(ask("127.0.0.9"))[1])["data"]
    ways = (Hostile.silent, Hostile.dribbles_a_head, Hostile.dribbles_a_body, Hostile.closes, Hostile.sends_without_end,
            Hostile.sends_garbage, Hostile.comes_from_elsewhere, Hostile.asks_for_much, Hostile.does_not_read)
    before = files()
    streams = shut_everybody_out()
    threads = [threading.Thread(target=dribble, args=(streams,))]
    threads += [Hostile(number, way).thread for number, way in enumerate(ways)]
    times, failures = [], []
    ordinaries = [threading.Thread(target=ordinary, args=(f"127.0.1.{number}", expected, times, failures)) for number in range(4)]
    for thread in threads[:1] + ordinaries:
        thread.start()
    time.sleep(SECONDS / 3)
    warm = resident()
    time.sleep(SECONDS * 2 / 3)
    grown = resident() - warm
    until("heads that never end to be closed", lambda: files() < CONNECTIONS)
    Hostile.over.set()
    for thread in threads + ordinaries:
        thread.join(PATIENCE)
    for stream in streams + Hostile.held:
        stream.close()
    until("the server to be idle", lambda: metric("smalti_images_active") == metric("smalti_images_waiting") == 0)
    until("all connections to be closed", lambda: files() <= before + 2)
    times.sort()
    print(f"{len(times)} requests of 4 ordinary clients: half in {times[len(times) // 2]:.2f} s, "
          f"99 of 100 in {times[len(times) * 99 // 100]:.2f} s; memory grew by {grown:.1f} MB from {warm:.1f}")
    check(f"{len(failures)} requests were lost: {failures[:3]}", not failures)
    check(f"memory grew by {grown:.0f} MB", grown < MEGABYTES)


def what_has_begun_is_finished():
    """SIGTERM: the images of a request of which some are in work are all made, those that wait are refused at once."""
    begun = ask("127.0.0.2", n=30, size="64x64")
    until("images in work", lambda: metric("smalti_images_active") > 0)
    waiting = [ask(f"127.0.1.{i}", n=2, size="64x64") for i in range(100)]
    until("the queue", lambda: metric("smalti_images_waiting") > 20)
    os.kill(PID, signal.SIGTERM)
    status, body = answer(begun)
    check("what had begun", status == 200 and len(json.loads(body)["data"]) == 30)
    statuses = [answer(one)[0] for one in waiting]
    check(f"what waited: {statuses}", 503 in statuses and set(statuses) <= {200, 503})


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if SECONDS > 0:
        who_goes_leaves_the_queue()
        one_image_does_not_wait_for_many()
        soak()
    what_has_begun_is_finished()


main()
