#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The recipe for Spack, read as Spack would but without it: it depends on what scripts/packages installs, changes StarPU by
# the patches of scripts/starpu, and configures by options that there are.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/configure" --help >"${TMPDIR:-/tmp}/configure-help.$$" 2>/dev/null
trap 'rm -f "${TMPDIR:-/tmp}/configure-help.$$"' EXIT
python3 - "$root" "${TMPDIR:-/tmp}/configure-help.$$" <<'END_OF_PROGRAM'
import pathlib, re, sys, types

root, help_text = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
recipe = root / "packaging/spack/spack_repo/smalti/packages/smalti/package.py"

# Debian's packages of scripts/packages, as Spack has them; none: why.
spack = {
    "build-essential": {"c", "cxx"}, "autoconf": {"autoconf"}, "automake": {"automake"}, "libtool": {"libtool"},
    "pkg-config": {"pkgconfig"}, "python3": {"python"}, "libhwloc-dev": {"hwloc"}, "libdnnl-dev": {"onednn"},
    "libcunit1-dev": {"cunit"}, "libsentencepiece-dev": {"sentencepiece"}, "libcjson-dev": {"cjson"},
    "libpng-dev": {"libpng"}, "libmicrohttpd-dev": {"libmicrohttpd"}, "libjpeg62-turbo-dev": {"libjpeg-turbo"},
    "libwebp-dev": {"libwebp"}, "libxxhash-dev": {"xxhash"}, "libunistring-dev": {"libunistring"},
    "libpcre2-dev": {"pcre2"}, "libhdf5-dev": {"hdf5"}, "zlib1g-dev": {"zlib-api"}, "libdeflate-dev": {"libdeflate"},
    "libglpk-dev": {"glpk"}, "patchelf": {"patchelf"}, "opencl-c-headers": {"opencl-c-headers"},
    "ocl-icd-opencl-dev": {"ocl-icd"}, "libclblast-dev": {"clblast"}, "libopenmpi-dev": {"mpi"}, "openmpi-bin": {"mpi"},
    "patch": set(),  # Spack patches by itself
    "libprotobuf-dev": set(),  # Spack's SentencePiece has its own
    "libjs-chart.js": set(),  # CHARTJS: Spack does not have it
}
needed = set()
for group, package in re.findall(r"^(build|opencl|mpi) +(\S+) ", (root / "scripts/packages").read_text(), re.M):
    assert package in spack, f"scripts/packages has {package}: what is it in Spack?"
    needed |= spack[package]

depends, patched, variants = {}, [], set()

def depends_on(spec, when=None, patches=(), type=None):
    depends.setdefault(re.match("[a-z0-9-]+", spec)[0], []).append((spec, when))
    patched.extend(patches)

class Spec(dict):
    def __init__(self, on):
        self.on = on
    def satisfies(self, what):
        return (what[1:] in self.on) == (what[0] == "+")
    def __missing__(self, name):
        assert name in depends, name
        return types.SimpleNamespace(prefix="/prefix", mpicc="/prefix/bin/mpicc")

class AutotoolsPackage:
    def enable_or_disable(self, name):
        assert name in variants, name
        return [f"--{'enable' if self.spec.satisfies('+' + name) else 'disable'}-{name}"]

def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)

for name in "spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems":
    module(name)
module("spack_repo.builtin.build_systems.autotools", AutotoolsPackage=AutotoolsPackage)
module("spack.package", depends_on=depends_on, patch=lambda name: name, license=lambda name: None,
       version=lambda name: None, variant=lambda name, default, description: variants.add(name))
recipe_names = {"__file__": str(recipe)}
exec(compile(recipe.read_text(), recipe, "exec"), recipe_names)

found = set(depends) - {"starpu", "cuda"}
assert found == needed, f"only in the recipe: {found - needed}; only in scripts/packages: {needed - found}"
for _, when in sum(depends.values(), []):
    assert when is None or when[1:] in variants, when

script = (root / "scripts/starpu").read_text()
version = re.search(r"^version=(\S+)$", script, re.M)[1]
assert any(spec.startswith(f"starpu@{version}+") for spec, _ in depends["starpu"]), f"not the StarPU {version} of scripts/starpu"
series = [line.split() for line in (root / "scripts/lib/starpu/series").read_text().splitlines()]
of = {kind: [f"starpu/{name}.patch" for name, _ in series if _ == kind] for kind in ("all", "real", "mpi")}
assert patched == of["all"] + of["real"] + of["mpi"] and all(of.values()), patched
for name in patched:
    assert (recipe.parent / name).resolve() == (root / "scripts/lib" / name).resolve(), name

configured = (root / "configure.ac").read_text() + "".join(path.read_text() for path in (root / "m4").glob("smalti_*.m4"))
for module_name, least in re.findall(r"AX_SMALTI_PKG\(\[\w+\], \[(\S+) >= ([0-9.]+)\]", configured):
    name = {"libcjson": "cjson", "libjpeg": "libjpeg-turbo", "libpcre2-8": "pcre2", "libxxhash": "xxhash"}.get(module_name, module_name)
    if name in depends and name != "starpu":
        assert any(f"{name}@{least}:" in spec for spec, _ in depends[name]), f"configure wants {name} {least}"

for on in set(), {"cuda"}, {"opencl", "mpi"}:
    package = recipe_names["Smalti"]()
    package.spec = Spec(on)
    for argument in package.configure_args():
        option = re.sub("^--disable-", "--enable-", argument.split("=")[0])
        assert re.search(rf"^  {re.escape(option)}\b", help_text, re.M), f"configure has no {option}"
END_OF_PROGRAM
