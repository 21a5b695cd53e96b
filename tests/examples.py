#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every example of every help page and of every page below docs/, but of the pages that tests/readme.sh runs, from a
directory that has the files that they name, with fewer steps and smaller models. A man page has to hold the examples of its
command's help. Lines that need what is not there (a cluster, MPI, the simulator) are named as skipped."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

SMALTI, BENCH = os.environ["SMALTI"], os.environ["SMALTI_BENCH"]
DATA = pathlib.Path(os.environ["SMALTI_TESTDATA"]).resolve()
MODELS = pathlib.Path(os.environ["SMALTI_MODELS"]).resolve()
ROOT = DATA.parent.parent
BUILD = pathlib.Path(SMALTI).resolve().parent
LONGEST = 300  # seconds, of a command that hangs

# What makes an example as short as a test has to be; where a step's number is part of a path, it stays the last one's.
SHORTER = [
    (r"--steps (500|1000|5000|100000)\b", "--steps 2"),
    (r"\bstep-(500|1000)\b", "step-2"),
    (r"--sample-every 500", "--sample-every 2 --sample-size 32x32 --sample-steps 1"),
    (r"--batch 48", "--batch 2"),
    (r"(-s|--size) (768x512|1024x1024)", r"\1 64x64"),
    (r"--memory-limit 24G", "--memory-limit 1G"),
    (r"(smalti-bench make-model) -g sigma-[0-9a-z]+( --t5-layers 2)?( --only [a-z,]+)?", r"rm -rf model && \1 -g tiny"),
    (r"extract (data_info.json|data.jsonl) -o (features|\{\})", r"extract list.json --image-dir data -k prompt,long -s 128 -o \2"),
    (r"extract data_info.json --vae", "extract InternData/data_info.json --vae"),
    (r"--image-dir images", "--image-dir data/images"),
    (r"extract data.jsonl --shard", "extract captions.jsonl --shard"),
    (r"00099", "00001"),
    (r"--(dit|vae) 512x512", r"--\1 64x64"),
    (r"(smalti-bench generate -m model) --size 512x512", r"\1 --size 64x64"),
    (r"smalti quantize (\S+) (\S+)", r"rm -rf \2 && smalti quantize \1 \2"),
    (r"tests/data/extract/InternData/data_info.json", "list.json --image-dir data"),
    (r" --repeats \d+", ""),
    (r"smalti-bench kernels(?! --filter)", "smalti-bench kernels --filter odd --repeats 1"),
    (r"smalti-bench kernels --filter conv", "smalti-bench kernels --filter odd --repeats 1"),
    (r"(smalti simulate train .*--batch) \d+", r"\1 2"),
    (r"(smalti simulate extract .*--items) \d+", r"\1 2"),
    (r"(smalti-bench schedule --optimal .*)--model sigma-256 ", r"\1"),
    (r"(smalti-bench schedule --optimal .*)--steps 10", r"\1--steps 1"),
    (r"smalti-bench (stages|generate|schedule)", r"smalti-bench \1 --repeats 1"),
    (r"smalti-bench train( --batch 32)?", "smalti-bench train --batch 2 --repeats 1"),
    (r"(\bsmalti train (?!.*--steps)[^|&]*[^|& ])", r"\1 --steps 2"),
    (r"(\bsmalti generate (?!.*--steps)[^|&]*--opencl \d)", r"\1 --steps 2"),
    (r"(\bsmalti train (?!.*--batch)[^|&]*--opencl \d)", r"\1 --batch 2"),
    (r"/shared/", "shared/"),
    (r"(127\.0\.0\.1|0\.0\.0\.0):8000", r"\1:%PORT%"),
    (r"smalti serve(?=$| #| -m)", "smalti serve --listen 127.0.0.1:%PORT%"),
    (r"\bbuild/smalti", "smalti"),
    (r"\ba-starpu-program\b", "true"),
    (r" -o run.html --every 10", " -o watched.html --every 1"),
]

# Lines of docs that are no commands of this program, or need a machine that is not there.
SKIPPED = [
    (r"^(scripts/|sbatch |job=|spack |peers/|pip )|/peers/|^python3 -m venv", "it needs packages, a cluster or hours"),
    (r"\bmpirun |starpu_tcpipexec", "it needs a build for MPI"),
    (r"\.\.\.( |$)|^smalti shard ", "it is a pattern"),
    (r"--model sigma-1024", "it needs a checkpoint of PixArt's own code"),
    (r"\bmine\.(c|so)\b", "it needs a policy of the reader's"),
    (r"\b(train|held|world)/|\bothers\b|--features last", "it needs a world that scripts/tesserae/draw makes with Pillow"),
]


def help_lines(program, command):
    text = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^    (\S.*)$", text.partition("\nExamples:\n")[2].partition("\n\n")[0], re.M)


def commands(program):
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  ([a-z-]+) {2,}", text.partition("\nCommands:\n")[2].partition("\n\n")[0], re.M)
    for name in names:
        sub = subprocess.run([program, name, "--help"], capture_output=True, text=True, check=True).stdout
        listed = re.findall(r"^  ([a-z-]+) {2,}", sub.partition("\nCommands:\n")[2].partition("\n\n")[0], re.M)
        yield from ([f"{name} {one}" for one in listed] or [name])


def check_man_page(program, command, lines):
    page = BUILD / "docs" / f"{program}-{command.replace(' ', '-')}.1"
    text = page.read_text().replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "").replace("\\e", "\\")
    for line in lines:
        assert line in text, f"{page.name} lacks the example: {line}"


def examples():
    """(where, line) in the order in which a reader meets them."""
    for program, path in (("smalti", SMALTI), ("smalti-bench", BENCH)):
        for command in commands(path):
            lines = help_lines(path, command)
            check_man_page(program, command, lines)
            yield from ((f"{program} {command} --help", line) for line in lines)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if re.match("install|tour|tutorial-", page.name):  # tests/readme.sh runs them
            continue
        text = re.sub(r"\\\n +", "", page.read_text())
        for line in re.findall(r"^    (\S.*)$", text, re.M):
            if re.search(r"(^|[ /])(smalti|smalti-bench) ", line) and not line.startswith(("import", "return")):
                yield str(page.relative_to(ROOT)), line


# What examples read that other examples write anew.
PRISTINE = ("features", "projections", "captions", "images", "pictures", "found", "run")


def clear_outputs(work, line):
    """An example begins where nobody has run one before, unless it goes on with what is there."""
    for name in re.findall(r" -o (\S+)", line):
        if (work / name).is_dir() and not re.search("--(resume|repair|retry-failed|append)", line):
            shutil.rmtree(work / name)


def restore(work, line):
    for name in PRISTINE:
        if re.search(rf" -o {name}/?( |$)", line):
            shutil.rmtree(work / name, ignore_errors=True)
            shutil.copytree(work / "pristine" / name, work / name)


def executable(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def run(*command, **more):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **more)


def prepare(work):
    """The files that examples name."""
    os.chdir(work)
    pictures = DATA / "extract" / "InternImgs"
    for name, target in (("smalti", SMALTI), ("smalti-bench", BENCH)):
        executable(work / "bin" / name, f'#!/bin/sh\nexec "{target}" "$@"\n')
    for name in ("display", "pnmtojpeg", "sbatch"):
        executable(work / "bin" / name, "#!/bin/sh\nexec cat >/dev/null\n")
    if not shutil.which("jq"):
        executable(work / "bin" / "jq", "#!/bin/sh\nexec cat >/dev/null\n")
    for name in ("PixArt-Sigma-XL-2-512-MS", "MODEL"):
        (work / name).symlink_to(MODELS / "tesserae")
    (work / "python").symlink_to(ROOT / "python")
    (work / "docs").symlink_to(ROOT / "docs")
    (work / "policies").symlink_to(ROOT / "policies")
    (work / "build").symlink_to(BUILD)
    shutil.copytree(DATA / "extract" / "InternData", work / "InternData")
    shutil.copytree(pictures, work / "InternImgs")
    shutil.copytree(pictures, work / "photos")
    shutil.copytree(pictures, work / "data" / "images")
    shutil.copy(work / "InternData" / "data_info.json", work / "data_info.json")
    images = sorted(path.name for path in pictures.iterdir() if path.suffix == ".png")
    (work / "frames").mkdir()
    for number in range(2):
        shutil.copy(pictures / images[0], work / "frames" / f"{number}.png")
    shutil.copy(pictures / images[0], work / "photo.jpg")
    shutil.copy(pictures / images[0], work / "data" / "images" / "17.png")
    with open(work / "captions.jsonl", "w") as captions, open(work / "prompts.jsonl", "w") as prompts:
        for number in range(3):
            captions.write(json.dumps({"id": number, "caption": f"a red star {number}", "prompt": "a star"}) + "\n")
            prompts.write(json.dumps({"prompt": f"a red star {number}", "width": 64, "height": 64}) + "\n")
    (work / "prompts.txt").write_text("a red star\na green heart on a black background\n")
    (work / "data.jsonl").write_text(json.dumps({"path": "17.png", "prompt": "a star"}) + "\n")
    shutil.copytree(DATA / "golden" / "lora" / "peft", work / "my-style")
    shutil.copy(DATA / "golden" / "lora" / "flat" / "lora.safetensors", work / "faces.safetensors")
    shutil.copy(DATA / "golden" / "gguf" / "t5-q8_0.gguf", work / "t5-v1_1-xxl-encoder-Q8_0.gguf")
    shutil.copy(pictures / images[0], work / "mask.png")
    (work / "token.txt").write_text("0123456789abcdef0123456789abcdef\n")
    smalti = work / "bin" / "smalti"
    shared = work / "shared"
    shared.mkdir()
    items = [{"path": f"images/{name}", "prompt": f"a red star {n}", "long": f"a long red star {n}", "width": 64, "height": 64,
              "ratio": 1.0} for n, name in enumerate(["17.png", *images[:3]])]
    (work / "list.json").write_text(json.dumps(items))
    for name in ("features", "first", "second"):
        run(smalti, "extract", "list.json", "--image-dir", "data", "-k", "prompt,long", "-s", "128", "-q", "-o", name)
    run(smalti, "retrieve", "train", "features", "--steps", "2", "--held-out", "0", "-q", "-o", "projections")
    run(smalti, "retrieve", "index", "features", "-q", "-o", "captions")
    for name in ("images", "pictures", "found"):
        run(smalti, "retrieve", "index", "features", "--of", "images", "--projections", "projections", "-q", "-o", name)
    run(smalti, "train", "features", "--steps", "2", "--batch", "2", "-q", "-o", "run")
    run(smalti, "encode", "frames/0.png", "-q", "-o", "photo.safetensors")
    for name in PRISTINE:
        shutil.copytree(work / name, work / "pristine" / name)
    run(smalti, "generate", "-p", "a", "-s", "64x64", "--steps", "1", "--save-latents", "-q", "-o", "star.png")
    shutil.copy(work / "star.safetensors", work / "rest.safetensors")
    run(smalti, "encode", "frames/0.png", "frames/1.png", "--sample", "-q", "-o", "batch.npy")
    for name in ("latents.npy", "big.npy", "latents-1024x1024.npy"):
        run(smalti, "encode", "frames/0.png", "--sample", "-q", "-o", name)
    for path in [path for path in (work / "photos").rglob("*.*") if path.is_file()]:
        path.with_suffix(".txt").write_text("a red star")
    for name in ("tars", "dataset", "laion"):
        (work / name).mkdir()
    for number in range(2):
        members = [name for image in images for name in (image, image[:-4] + ".txt")]
        run("tar", "-cf", f"laion/{number:05}.tar", "-C", "photos", *members)
    config = json.loads((MODELS / "tesserae" / "transformer" / "config.json").read_text())
    (work / "config.json").write_text(json.dumps(config))


def skipped_because(line, simulator):
    for pattern, reason in SKIPPED:
        if re.search(pattern, line):
            return reason
    if any(word in line for word in ("simulate", "--machine", "--predict")):
        return "" if simulator else "it needs the program that simulates (scripts/build --simgrid)"
    if "parquet_to_jsonl" in line:
        return "tests/parquet_to_jsonl.sh runs it"
    return ""


def shorter(line, port):
    line = re.sub(r"\s#.*$", "", line)
    for pattern, text in SHORTER:
        line = re.sub(pattern, text, line)
    return line.replace("%PORT%", str(port))


def start_server(line, work, number):
    log = work / f"serve-{number}"
    with open(log, "w") as to:
        process = subprocess.Popen(["bash", "-c", f"exec {line}"], stdout=to, stderr=subprocess.STDOUT, start_new_session=True)
    for _ in range(600):
        if "listening" in log.read_text():
            return process
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"{line}: {log.read_text()}")


def stop(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONGEST) in (0, 1)


def watch(line, page):
    """A command that goes on until it is stopped: until it has written its page."""
    process = subprocess.Popen(["bash", "-c", f"exec {line}"], stderr=subprocess.PIPE, start_new_session=True)
    for _ in range(10 * LONGEST):
        if page.exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    stop(process)
    assert page.exists(), f"{line}: {process.stderr.read()}"


def one(line, environment):
    result = subprocess.run(["bash", "-o", "pipefail", "-c", line], env=environment, capture_output=True, text=True, timeout=LONGEST,
                            stdin=subprocess.DEVNULL)
    assert result.returncode == 0, f"{line}: status {result.returncode}: {result.stderr[-1500:]}{result.stdout[-300:]}"


def main():
    work = pathlib.Path(sys.argv[1]).resolve()
    os.environ.update({"PATH": f"{work}/bin:{os.environ['PATH']}", "STARPU_OPENCL_ON_CPUS": "1", "STARPU_WORKERS_NOBIND": "1",
                       "POCL_DEVICES": "basic basic basic basic"})
    prepare(work)
    simulator = subprocess.run([SMALTI, "simulate", "--machines"], capture_output=True).returncode == 0 and (
        subprocess.run([SMALTI, "simulate", "--machine", "1xA100-PCIe", "--model", "sigma-256", "--steps", "1"],
                       capture_output=True).returncode == 0)
    opencl = subprocess.run([SMALTI, "topology", "--opencl", "1"], capture_output=True).returncode == 0
    environment = dict(os.environ)
    ran = skipped = 0
    server, seen, failures = None, set(), []
    port = 20000 + os.getpid() % 20000
    for where, given in examples():
        line = shorter(given, port)
        reason = skipped_because(given, simulator) or ("" if opencl or "opencl" not in line else "there is no OpenCL device")
        if reason:
            skipped += 1
            print(f"    left out, {reason}: {given}")
            continue
        if line in seen and "serve" not in line:
            continue
        seen.add(line)
        began = time.monotonic()
        clear_outputs(work, line)
        try:
            if re.search(r"^smalti serve\b", line):
                if server:
                    stop(server)
                server = start_server(line, work, ran)
                if "--token-file" in line:
                    stop(server)
                    server = start_server(f"smalti serve --listen 127.0.0.1:{port}", work, "next")
            elif "--every" in line:
                watch(line, work / re.search(r"-o (\S+)", line)[1])
            else:
                one(line, environment)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failures.append(f"{where}: {error}")
        restore(work, line)
        print(f"    {time.monotonic() - began:.1f} s: {line}")
        ran += 1
    if server:
        stop(server)
    print(f"{ran} examples, {skipped} left out")
    assert ran > 60, "there were more examples"
    sys.exit("\n".join(failures) if failures else 0)


main()
