# SPDX-License-Identifier: Apache-2.0

# AX_SMALTI_PKG(VARIABLE, MODULE, HOW TO GET IT): a package that has to be there; its headers are none of
# our warnings' business.
AC_DEFUN([AX_SMALTI_PKG], [
  PKG_CHECK_MODULES([$1], [$2], [], [
    missing=`AS_ECHO(["$[$1]_PKG_ERRORS"]) | tail -n 1`
    AC_MSG_ERROR([$2 is needed ($3; scripts/quickstart installs everything): $missing])])
  [$1]_CFLAGS=`AS_ECHO(["$[$1]_CFLAGS"]) | sed 's/-I/-isystem /g'`
])

# AX_SMALTI_TAKEN_ALONG: the libraries that are installed beside libsmalti, since the system's loader would not find
# them for everybody: a StarPU that lies outside of /usr, as the one of scripts/starpu.
AC_DEFUN([AX_SMALTI_TAKEN_ALONG], [
  starpu_libdir=`$PKG_CONFIG --variable=libdir starpu-1.4`
  AS_CASE([$starpu_libdir],
    [/usr/*|/lib*], [taken_along=],
    [taken_along=`ls "$starpu_libdir"/libstarpu-1.4.so.[[0-9]] "$starpu_libdir"/libstarpu-1.4.so.[[0-9]][[0-9]] 2>/dev/null`])
  AC_SUBST([taken_along])
  AM_CONDITIONAL([TAKES_ALONG], [test -n "$taken_along"])
  AS_IF([test -n "$taken_along"], [
    AC_CHECK_PROG([PATCHELF], [patchelf], [patchelf])
    AS_IF([test -z "$PATCHELF"],
      [AC_MSG_ERROR([patchelf is needed to install StarPU beside Smalti (Debian: patchelf)])])])
])

# AX_SMALTI_ONEDNN: oneDNN has no pkg-config file. src/kernels/cpu/onednn_api.c knows the C APIs of 2.x and 3.x.
AC_DEFUN([AX_SMALTI_ONEDNN], [
  AC_CHECK_HEADER([dnnl.h], [], [AC_MSG_ERROR([dnnl.h was not found: install oneDNN (Debian: libdnnl-dev)])])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <dnnl.h>
#if DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR < 206 || DNNL_VERSION_MAJOR > 3
#error neither oneDNN 2.6 or later nor 3
#endif]])], [], [AC_MSG_ERROR([oneDNN 2.6 or later of 2.x, or 3.x, is needed])])
  AC_CHECK_LIB([dnnl], [dnnl_engine_create], [ONEDNN_LIBS=-ldnnl],
    [AC_MSG_ERROR([libdnnl does not link: install oneDNN (Debian: libdnnl-dev)])])
  # Debian's libdnnl runs on OpenMP, which has to be told that one thread does each call's work.
  AC_CHECK_LIB([gomp], [omp_set_num_threads], [ONEDNN_LIBS="$ONEDNN_LIBS -lgomp"],
    [AC_MSG_ERROR([libgomp does not link: install the OpenMP runtime of GCC])])
  AC_SUBST([ONEDNN_LIBS])
])

# AX_SMALTI_SIMGRID: --enable-simgrid makes the program that simulates machines, with a StarPU that can do nothing else.
AC_DEFUN([AX_SMALTI_SIMGRID], [
  AC_ARG_ENABLE([simgrid], [AS_HELP_STRING([--enable-simgrid], [build smalti-sim, which simulates machines, and nothing else])])
  AS_IF([test "x$enable_simgrid" = xyes], [wanted_simgrid=yes], [wanted_simgrid=no])
  save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $STARPU_CFLAGS"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <starpu_config.h>
#ifndef STARPU_SIMGRID
#error without
#endif]])], [has_simgrid=yes], [has_simgrid=no])
  CFLAGS=$save_CFLAGS
  AS_IF([test $wanted_simgrid = yes && test $has_simgrid = no],
    [AC_MSG_ERROR([StarPU was built without SimGrid: take the one of scripts/starpu --simgrid])])
  AS_IF([test $wanted_simgrid = no && test $has_simgrid = yes],
    [AC_MSG_ERROR([StarPU was built for simulation alone: take the one of scripts/starpu, or configure with --enable-simgrid])])
  AS_IF([test $has_simgrid = yes], [AC_DEFINE([SMALTI_SIMGRID], [1], [whether this is the program that simulates machines])])
  AM_CONDITIONAL([SIMGRID], [test $has_simgrid = yes])
])

# AX_SMALTI_OPENCL: devices by OpenCL, where StarPU has it and CLBlast is there; --enable-opencl insists.
AC_DEFUN([AX_SMALTI_OPENCL], [
  AC_ARG_ENABLE([opencl], [AS_HELP_STRING([--enable-opencl], [run on OpenCL devices, too (default: where possible)])])
  opencl_lacks=
  AS_IF([test "x$enable_opencl" = xno], [opencl_lacks="--disable-opencl"], [
    save_CFLAGS=$CFLAGS save_LIBS=$LIBS
    CFLAGS="$CFLAGS $STARPU_CFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <starpu_config.h>
#ifndef STARPU_USE_OPENCL
#error without
#endif]])], [], [opencl_lacks="StarPU was built without it (see scripts/starpu)"])
    AC_CHECK_LIB([OpenCL], [clGetPlatformIDs], [],
      [opencl_lacks="libOpenCL does not link (Debian: ocl-icd-opencl-dev)"])
    AC_CHECK_HEADER([clblast_c.h], [], [opencl_lacks="clblast_c.h was not found (Debian: libclblast-dev)"])
    AC_CHECK_LIB([clblast], [CLBlastSgemm], [],
      [opencl_lacks="libclblast does not link (Debian: libclblast-dev)"], [-lOpenCL])
    CFLAGS=$save_CFLAGS LIBS=$save_LIBS
    AS_IF([test "x$enable_opencl" = xyes && test -n "$opencl_lacks"], [AC_MSG_ERROR([no OpenCL: $opencl_lacks])])])
  AC_MSG_CHECKING([for OpenCL devices])
  AS_IF([test -z "$opencl_lacks"], [
    AC_MSG_RESULT([yes])
    AC_DEFINE([SMALTI_OPENCL], [1], [whether it runs on OpenCL devices])
    AC_DEFINE_UNQUOTED([SMALTI_OPENCL_VERSION], ["`$PKG_CONFIG --modversion OpenCL 2>/dev/null || echo 1.2`"],
      [the loader of OpenCL that this was built against])
    AC_DEFINE_UNQUOTED([SMALTI_CLBLAST_VERSION], ["`$PKG_CONFIG --modversion clblast 2>/dev/null || echo 1`"],
      [the CLBlast that this was built against])
    OPENCL_LIBS="-lclblast -lOpenCL"], [AC_MSG_RESULT([no: $opencl_lacks])])
  AC_DEFINE([CL_TARGET_OPENCL_VERSION], [120], [the OpenCL whose functions its headers, which StarPU's include, declare])
  AC_SUBST([OPENCL_LIBS])
  AM_CONDITIONAL([OPENCL], [test -z "$opencl_lacks"])
])

# AX_SMALTI_CUDA: devices by CUDA, where StarPU has it and the toolkit is there; --enable-cuda insists. The kernels are
# compiled for those of CUDA_ARCHITECTURES that nvcc knows, and for later ones by the last. cuDNN is taken where it is.
AC_DEFUN([AX_SMALTI_CUDA], [
  AC_ARG_ENABLE([cuda], [AS_HELP_STRING([--enable-cuda], [run on CUDA devices, too (default: where possible)])])
  AC_ARG_VAR([CUDA_HOME], [folder of the CUDA toolkit (default: that of nvcc, or /usr/local/cuda)])
  AC_ARG_VAR([CUDA_ARCHITECTURES], [compute capabilities to compile kernels for, as '80 90' (default: 80 90 100)])
  AC_ARG_VAR([NVCC], [CUDA's compiler])
  cuda_lacks= cudnn_libs= HOPPER_FLAGS=
  AS_IF([test "x$enable_cuda" = xno], [cuda_lacks="--disable-cuda"], [
    AC_PATH_PROG([NVCC], [nvcc], [], [${CUDA_HOME:+$CUDA_HOME/bin:}$PATH:/usr/local/cuda/bin])
    AS_IF([test -z "$CUDA_HOME" && test -n "$NVCC"], [CUDA_HOME=`realpath "$NVCC"` && CUDA_HOME=${CUDA_HOME%/bin/nvcc}])
    save_CFLAGS=$CFLAGS save_LIBS=$LIBS save_LDFLAGS=$LDFLAGS
    CFLAGS="$CFLAGS $STARPU_CFLAGS"
    LDFLAGS="$LDFLAGS -L$CUDA_HOME/lib64 -L$CUDA_HOME/lib"
    AS_IF([test -z "$NVCC"], [cuda_lacks="nvcc was not found (set CUDA_HOME to the folder of CUDA's toolkit)"], [
      AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <starpu_config.h>
#ifndef STARPU_USE_CUDA
#error without
#endif]])], [], [cuda_lacks="StarPU was built without it (see scripts/starpu --cuda)"])
      AS_IF([test -z "$cuda_lacks"], [
        AC_CHECK_LIB([cudart], [cudaLibraryLoadData], [],
          [cuda_lacks="libcudart of CUDA 12.8 or later does not link (CUDA_HOME: $CUDA_HOME)"])
        AC_CHECK_HEADER([cublasLt.h], [], [cuda_lacks="cublasLt.h was not found (CUDA_HOME: $CUDA_HOME)"])
        AC_CHECK_LIB([cublasLt], [cublasLtMatmul], [],
          [cuda_lacks="libcublasLt does not link (CUDA_HOME: $CUDA_HOME)"])
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <cudnn.h>
#if CUDNN_VERSION < 90800
#error its graphs need a handle
#endif]])], [AC_CHECK_LIB([cudnn], [cudnnBackendExecute], [cudnn_libs=-lcudnn])])])])
    CFLAGS=$save_CFLAGS LIBS=$save_LIBS LDFLAGS=$save_LDFLAGS
    AS_IF([test "x$enable_cuda" = xyes && test -n "$cuda_lacks"], [AC_MSG_ERROR([no CUDA: $cuda_lacks])])])
  AC_MSG_CHECKING([for CUDA devices])
  AS_IF([test -z "$cuda_lacks"], [
    AC_MSG_RESULT([yes])
    AC_DEFINE([SMALTI_CUDA], [1], [whether it runs on CUDA devices])
    CUDA_LIBS="-L$CUDA_HOME/lib64 -L$CUDA_HOME/lib -Wl,-rpath,$CUDA_HOME/lib64 -Wl,-rpath,$CUDA_HOME/lib $cudnn_libs -lcublasLt -lcudart"
    known=`"$NVCC" --list-gpu-arch`
    for number in ${CUDA_ARCHITECTURES:-80 90 100}; do
      AS_CASE([" "`AS_ECHO(["$known"]) | tr '\n' ' '`], [*" compute_$number "*], [
        cuda_last="arch=compute_$number,code=compute_$number"
        CUDA_FLAGS="$CUDA_FLAGS -gencode arch=compute_$number,code=sm_$number"
        AS_IF([test "$number" = 90], [HOPPER_FLAGS="-gencode arch=compute_90a,code=sm_90a"])])
    done
    CUDA_FLAGS="$CUDA_FLAGS -gencode $cuda_last"
    AS_IF([test "x$enable_werror" = xyes], [
      CUDA_FLAGS="$CUDA_FLAGS -Werror all-warnings"
      HOPPER_FLAGS="${HOPPER_FLAGS:+$HOPPER_FLAGS -Werror all-warnings -Xptxas -warn-spills}"])], [AC_MSG_RESULT([no: $cuda_lacks])])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([CUDA_FLAGS])
  AC_SUBST([HOPPER_FLAGS])
  AS_IF([test -n "$HOPPER_FLAGS"], [AC_DEFINE([SMALTI_HOPPER], [1], [whether it has kernels for compute capability 9.0 alone])])
  AM_CONDITIONAL([HOPPER], [test -z "$cuda_lacks" && test -n "$HOPPER_FLAGS"])
  AM_CONDITIONAL([CUDA], [test -z "$cuda_lacks"])
  AS_IF([test -n "$cudnn_libs"], [AC_DEFINE([SMALTI_CUDNN], [1], [whether it has cuDNN 9.8 or later])])
  AM_CONDITIONAL([CUDNN], [test -z "$cuda_lacks" && test -n "$cudnn_libs"])
])

# AX_SMALTI_MPI: one graph over the processes of an MPI job, by StarPU-MPI; only with --enable-mpi.
AC_DEFUN([AX_SMALTI_MPI], [
  AC_ARG_ENABLE([mpi], [AS_HELP_STRING([--enable-mpi], [spread images over the processes of an MPI job, too])], [], [enable_mpi=no])
  AC_ARG_VAR([MPICC], [MPI's compiler, which knows MPI's flags])
  AS_IF([test "x$enable_mpi" != xno], [
    AX_SMALTI_PKG([STARPUMPI], [starpumpi-1.4 >= 1.4.8], [scripts/starpu --mpi builds it])
    AC_PATH_PROG([MPICC], [mpicc])
    AS_IF([test -z "$MPICC"], [AC_MSG_ERROR([mpicc was not found: install MPI (Debian: libopenmpi-dev openmpi-bin)])])
    mpi_flags=`"$MPICC" -show | tr ' ' '\n'`
    MPI_CFLAGS=`AS_ECHO(["$mpi_flags"]) | sed -n 's/^-I/-isystem /p' | tr '\n' ' '`
    MPI_LIBS=`AS_ECHO(["$mpi_flags"]) | grep -E '^-(L|l|Wl)' | tr '\n' ' '`
    MPI_CFLAGS="$MPI_CFLAGS $STARPUMPI_CFLAGS" MPI_LIBS="$STARPUMPI_LIBS $MPI_LIBS"
    save_CFLAGS=$CFLAGS save_LIBS=$LIBS
    CFLAGS="$CFLAGS $MPI_CFLAGS"
    LIBS="$LIBS $MPI_LIBS $STARPU_LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <starpu_mpi.h>]],
      [[return MPI_Init(0, 0) + starpu_mpi_wait_for_all(MPI_COMM_WORLD);]])], [],
      [AC_MSG_ERROR([a program of StarPU-MPI does not link (see config.log): was StarPU built with the MPI of $MPICC?])])
    CFLAGS=$save_CFLAGS LIBS=$save_LIBS
    AS_IF([test -n "$taken_along"], [taken_along="$taken_along `ls "$starpu_libdir"/libstarpumpi-1.4.so.[[0-9]]`"])
    AC_DEFINE([SMALTI_MPI], [1], [whether it runs over the processes of an MPI job])])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
  AM_CONDITIONAL([MPI], [test "x$enable_mpi" != xno])
])

# AX_SMALTI_UNISTRING: libunistring has no pkg-config file either.
AC_DEFUN([AX_SMALTI_UNISTRING], [
  AC_CHECK_HEADER([unicase.h], [], [AC_MSG_ERROR([unicase.h was not found: install libunistring (Debian: libunistring-dev)])])
  AC_CHECK_LIB([unistring], [u8_normalize], [UNISTRING_LIBS=-lunistring],
    [AC_MSG_ERROR([libunistring does not link: install it (Debian: libunistring-dev)])])
  AC_SUBST([UNISTRING_LIBS])
])
