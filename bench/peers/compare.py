#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Smalti beside PyTorch and OpenVINO on the same stage, in one run, in turns.

Usage: compare.py [--smalti-bench PROGRAM] [--libraries torch,openvino] [--device cpu|cuda] [--rounds N] [--threads N]
                  [--model DIR] [--samples N] [--caption-length N]
                  [--smalti PROGRAM --features DIR [--memory-limit SIZE] [--lora-rank R] [--recompute]
                  [--tile-tokens N]] [--cpu-time] STAGE PRECISION SIZE

The arguments are those of stage.py, SIZE one or several, as 512x512,1024x1024; on a GPU the libraries open all of them at once, since compiling takes
a minute each. With --samples, of train and step, a run is of all of them. `step` runs `smalti train`
on features of images of that size (--features, of `smalti extract`), until it has made two steps behind the first; with
--memory-limit it computes as few activations again as that allows. --lora-rank trains an adapter, beside peft's; --recompute has
both compute every block again in the backward pass; --cpu-time counts seconds on CPUs, for machines that others use (with
--threads 1, since threads that wait count, too). In each
round Smalti runs the stage twice (after a run that is not counted), then every library does once: what disturbs the machine
disturbs all. Prints each one's median, Smalti's over it (less
than 1: Smalti is faster), the least and the largest ratio of a round, and the peak memory. Without --model the
libraries use random weights, and Smalti needs a model of the same geometry in --smalti-model:
`smalti-bench make-model -g sigma-512 DIR`.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = {"t5": "--t5", "dit": "--dit", "train": "--train", "decode": "--vae", "encode": "--encode"}
PRECISIONS = {"float32": ["--precision", "f32"], "bfloat16": ["--precision", "bf16"]}
INTEGERS = {"int8": {"t5": ["--text-encoder-precision", "int8"], "dit": ["--precision", "w8a8"]},
            "int8-bfloat16": {"t5": ["--precision", "bf16", "--text-encoder-precision", "w8a8"], "dit": ["--precision", "w8a8-bf16"]}}


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):])
    parser.add_argument("--smalti-bench", default="smalti-bench")
    parser.add_argument("--smalti-model")
    parser.add_argument("--libraries", default="torch,openvino")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--caption-length", type=int, default=300)
    parser.add_argument("--smalti", default="smalti")
    parser.add_argument("--features")
    parser.add_argument("--memory-limit")
    parser.add_argument("--lora-rank", type=int, default=0)
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--tile-tokens", type=int, default=0)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("stage", choices=(*OPTIONS, "step", "generate"))
    parser.add_argument("precision", choices=(*PRECISIONS, *INTEGERS))
    parser.add_argument("size")
    given = parser.parse_args()
    if not given.model and not given.smalti_model:
        parser.error("--model or --smalti-model is needed")
    if given.precision in INTEGERS and given.stage not in INTEGERS[given.precision]:
        parser.error(f"{given.precision} is of t5 and dit")
    if given.stage == "step" and not given.features:
        parser.error("step needs --features")
    if given.stage == "t5" and not given.model:
        parser.error("t5 needs --model: without it the libraries' encoder is scaled to another depth")
    return given


class Peer:
    """stage.py in a process that waits between its runs."""

    def __init__(self, given, library, size):
        self.library = library
        command = [sys.executable, HERE / "stage.py", "--library", library, "--threads", str(given.threads),
                   "--steps", str(given.steps), "--samples", str(given.samples),
                   "--caption-length", str(given.caption_length), "--device", given.device]
        if given.model:
            command += ["--model", given.model]
        command += ["--cpu-time"] * given.cpu_time
        if given.stage == "step":
            command += ["--lora-rank", str(given.lora_rank)] + ["--recompute"] * given.recompute
        self.command = command + [given.stage, "int8" if given.precision in INTEGERS else given.precision, size]
        self.alone = given.stage == "step"  # its memory is its own while it runs: it is started anew in each round
        self.process = None
        self.seconds = []
        if given.device == "cuda" and not self.alone:
            self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def open(self):
        if self.alone:
            return
        if not self.process:
            self.start()
        self.read()  # it is ready

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.library} ended early: its words are above")
        answer = json.loads(line)
        self.peak = answer["peak_bytes"]
        return answer

    def run(self):
        if self.alone:
            self.start()
            self.read()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.seconds.append(self.read()["seconds"])
        if self.alone:
            self.close()

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
        self.process = None


class Smalti:
    library = "smalti"

    def __init__(self, given, size):
        model = given.smalti_model or given.model
        self.command = [given.smalti_bench]
        if given.stage == "generate":
            self.command += ["generate", "--size", size, "--steps", str(given.steps)]
        else:
            self.command += ["stages", OPTIONS[given.stage], size]
        if given.stage == "train":
            self.command += ["--samples", str(given.samples)]
        places = ["--cuda", "1", "--cpus", "1"] if given.device == "cuda" else ["--cpus", str(given.threads)]
        precision = PRECISIONS.get(given.precision) or INTEGERS[given.precision][given.stage]
        self.command += ["--model", model, *precision, *places, "--json", "--repeats"]
        # a GPU's commands are repeated as a graph from the third time on
        self.repeats = 9 if given.device == "cuda" else 2
        self.cpu_time = given.cpu_time
        self.seconds = []

    def open(self):
        pass

    def measure(self, repeats):
        """What it prints, and its seconds on CPUs, with those of opening and of the first run."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*self.command, str(repeats)], check=True, stdout=subprocess.PIPE, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return json.loads(done.stdout.splitlines()[1]), seconds

    def run(self):
        measured, seconds = self.measure(self.repeats + 1 if self.cpu_time else self.repeats)
        self.peak = measured.get("peak_bytes", 0)
        self.seconds.append((seconds - self.measure(1)[1]) / self.repeats if self.cpu_time else measured["seconds"])

    def close(self):
        pass


class SmaltiTrain(Smalti):
    """`smalti train` in a directory of its own, ended before it writes anything but its log."""

    STEPS = 3

    def __init__(self, given):
        self.command = [given.smalti, "train", given.features, "--model", given.smalti_model or given.model,
                        *PRECISIONS[given.precision], "--batch", str(given.samples), "--lanes", "1",
                        "--cpus", str(given.threads), "--caption-dropout", "0", "--ema", "0", "--lr", "1e-5",
                        "--steps", "1000", "--save-every", "0", "--quiet", "--lora-rank", str(given.lora_rank)]
        if given.tile_tokens:
            self.command += ["--tile-tokens", str(given.tile_tokens)]
        if given.recompute:
            self.command += ["--recompute", "block"]
        if given.memory_limit:
            self.command += ["--recompute", "auto", "--memory-limit", given.memory_limit]
        self.seconds = []
        self.cpu_time = given.cpu_time

    def run(self):
        with tempfile.TemporaryDirectory() as directory:
            run = pathlib.Path(directory) / "run"
            process = subprocess.Popen([*self.command, "-o", run])
            on_cpus = {}  # by the number of steps made
            while len(steps := self.steps(run)) < self.STEPS:
                if process.poll() is not None:
                    sys.exit("smalti train ended early: its words are above")
                on_cpus.setdefault(len(steps), self.seconds_on_cpus(process))
                time.sleep(0.1)
            on_cpus[self.STEPS] = self.seconds_on_cpus(process)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            process.kill()
            process.wait()
        self.peak = 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])
        of_cpus = (on_cpus[self.STEPS] - on_cpus[1]) / (self.STEPS - 1)
        self.seconds.append(of_cpus if self.cpu_time else statistics.median(steps[1:]))

    @staticmethod
    def seconds_on_cpus(process):
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def steps(run):
        log = run / "log.jsonl"
        lines = log.read_text().splitlines(keepends=True) if log.exists() else []
        return [entry["seconds"] for line in lines if line.endswith("\n") and "step" in (entry := json.loads(line))
                and "samples_per_second" in entry]


def compare(given, size, runners):
    for runner in runners:
        runner.open()
    for _ in range(given.rounds):
        for runner in runners:
            runner.run()
    smalti = runners[0]
    print(f"{given.stage} {size} {given.precision} on {given.device}, {given.threads} threads, "
          f"{given.rounds} rounds")
    print(f"{'':10}{'seconds':>10}{'smalti /':>10}{'least':>8}{'most':>8}{'peak MiB':>10}")
    for runner in runners:
        ratios = [a / b for a, b in zip(smalti.seconds, runner.seconds)]
        ratio = statistics.median(smalti.seconds) / statistics.median(runner.seconds)
        print(f"{runner.library:10}{statistics.median(runner.seconds):10.4f}{ratio:10.3f}"
              f"{min(ratios):8.3f}{max(ratios):8.3f}{runner.peak / 2**20:10.0f}", flush=True)
        runner.close()


def main():
    given = arguments()
    of_sizes = {}
    for size in given.size.split(","):
        smalti = SmaltiTrain(given) if given.stage == "step" else Smalti(given, size)
        of_sizes[size] = [smalti] + [Peer(given, library, size) for library in given.libraries.split(",")]
    for size, runners in of_sizes.items():
        compare(given, size, runners)


if __name__ == "__main__":
    main()
