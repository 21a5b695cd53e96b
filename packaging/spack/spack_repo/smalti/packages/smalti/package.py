# SPDX-License-Identifier: Apache-2.0
import pathlib

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *

_series = pathlib.Path(__file__).with_name("starpu") / "series"


def _patches(*kinds):
    """Return those of scripts/starpu for builds of these kinds, in order."""
    named = (line.split() for line in _series.read_text().splitlines())
    return [patch(f"starpu/{name}.patch") for name, kind in named if kind in kinds]


class Smalti(AutotoolsPackage):
    """PixArt text-to-image models as StarPU task graphs over tiled data.

    Chart.js, which Spack does not have, is to be named by CHARTJS in the environment where Debian's libjs-chart.js is
    not installed.
    """

    license("Apache-2.0")

    version("main")  # a checkout: spack dev-build

    variant("cuda", default=False, description="Compute on CUDA devices, too")
    variant("opencl", default=False, description="Compute on OpenCL devices, too")
    variant("mpi", default=False, description="Spread images over the processes of an MPI job, too")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("patchelf", type="build")

    # The one that the patches are of (scripts/starpu --patches lists them).
    depends_on("starpu@1.4.10+shared~fast~openmp~examples~fxt~simgrid", patches=_patches("all", "real"))
    depends_on("starpu+mpi", when="+mpi", patches=_patches("mpi"))
    for name in ("cuda", "opencl"):
        depends_on(f"starpu+{name}", when=f"+{name}")
        depends_on(f"starpu~{name}", when=f"~{name}")
    depends_on("starpu~mpi", when="~mpi")

    depends_on("cjson@1.7.14:")
    depends_on("cunit@2.1:")
    depends_on("glpk")
    depends_on("hdf5@1.10:~mpi")
    depends_on("hwloc@2.7:")
    depends_on("libdeflate@1.8:")
    depends_on("libjpeg-turbo@2.1:")
    depends_on("libmicrohttpd@0.9.75:")
    depends_on("libpng@1.6:")
    depends_on("libunistring")
    depends_on("libwebp@1.2:")
    depends_on("onednn@2.6:3 cpu_runtime=omp")
    depends_on("pcre2@10.34:")
    depends_on("sentencepiece@0.1.97:")
    depends_on("xxhash@0.8:")
    depends_on("zlib-api")

    depends_on("clblast", when="+opencl")
    depends_on("ocl-icd", when="+opencl")
    depends_on("opencl-c-headers", when="+opencl")
    depends_on("cuda@12.8:", when="+cuda")
    depends_on("mpi", when="+mpi")

    def configure_args(self):
        args = []
        for name in ("cuda", "opencl", "mpi"):
            args += self.enable_or_disable(name)
        if self.spec.satisfies("+cuda"):
            args.append(f"CUDA_HOME={self.spec['cuda'].prefix}")
        if self.spec.satisfies("+mpi"):
            args.append(f"MPICC={self.spec['mpi'].mpicc}")
        return args
