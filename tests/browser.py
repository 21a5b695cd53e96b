#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a page in a headless Chromium, evaluates an expression there, which may be a promise, and prints its value.

Usage: browser.py URL EXPRESSION [SCREENSHOT.png]
"""

import base64
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request


class Page:
    """One tab, by Chromium's DevTools protocol over a WebSocket."""

    def __init__(self, url):
        host, port, path = re.match(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.stream = socket.create_connection((host, int(port)), timeout=120)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.stream.recv(1)
        self.number = 0

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.stream.recv(count - len(data))
            if not part:
                sys.exit("browser.py: the browser has closed the connection")
            data += part
        return data

    def receive(self):
        text = b""
        while True:
            first, length = self.read(2)
            if length == 126:
                length, = struct.unpack(">H", self.read(2))
            elif length == 127:
                length, = struct.unpack(">Q", self.read(8))
            text += self.read(length)
            if first & 0x80:
                return json.loads(text)

    def send(self, message):
        data = json.dumps(message).encode()
        length = len(data)
        size = bytes([0x80 | length]) if length < 126 else b"\xfe" + struct.pack(">H", length) if length < 65536 else \
            b"\xff" + struct.pack(">Q", length)
        mask = os.urandom(4)
        self.stream.sendall(b"\x81" + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def call(self, method, **parameters):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": parameters})
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                return answer["result"]


    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)


def devtools(browser):
    for line in browser.stderr:
        found = re.search(rb"DevTools listening on ws://([^/]+)/", line)
        if found:
            return "http://" + found.group(1).decode()
    sys.exit("browser.py: the browser does not start")


def main():
    url, expression = sys.argv[1:3]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
             "--window-size=1000,1100", f"--user-data-dir={profile}", url], stderr=subprocess.PIPE) as browser:
        try:
            with urllib.request.urlopen(devtools(browser) + "/json", timeout=60) as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            page = Page(tabs[0]["webSocketDebuggerUrl"])
            while page.evaluate("location.href + document.readyState")["result"]["value"] != url + "complete":
                time.sleep(0.05)
            result = page.evaluate(expression)
            if len(sys.argv) > 3:
                with open(sys.argv[3], "wb") as file:
                    file.write(base64.b64decode(page.call("Page.captureScreenshot")["data"]))
            if "exceptionDetails" in result:
                sys.exit("browser.py: " + json.dumps(result["exceptionDetails"]))
            print(result["result"].get("value"))
        finally:
            browser.terminate()


main()
