# SPDX-License-Identifier: Apache-2.0

# AX_SMALTI_C11: the language, and the vector extensions of gcc and clang on x86-64.
AC_DEFUN([AX_SMALTI_C11], [
  AS_IF([test "x$ac_cv_prog_cc_c11" = xno], [AC_MSG_ERROR([a C11 compiler (gcc or clang) is needed])])
  AC_CACHE_CHECK([for x86-64], [smalti_cv_x86_64], [
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#ifndef __x86_64__
#error not x86-64
#endif]])], [smalti_cv_x86_64=yes], [smalti_cv_x86_64=no])])
  AM_CONDITIONAL([X86_64], [test "x$smalti_cv_x86_64" = xyes])
])

# AX_SMALTI_WARNINGS: SMALTI_WARNINGS for C and C++; --enable-werror makes them errors.
AC_DEFUN([AX_SMALTI_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make compiler warnings errors])])
  SMALTI_WARNINGS="-Wall -Wextra -Wshadow -Wvla"
  AS_IF([test "x$enable_werror" = xyes], [SMALTI_WARNINGS="$SMALTI_WARNINGS -Werror"])
  AC_SUBST([SMALTI_WARNINGS])
])

# AX_SMALTI_SANITIZERS: --enable-sanitizers builds everything under ASan and UBSan, but for what is compiled once for each
# instruction set: up to AVX2 under ASan alone, the wider ones under neither (SMALTI_MAX_ISA=avx2 has tests not run them). UBSan
# takes minutes for a file of vectors, and makes it thirty times as slow; ASan takes a minute for one of the widest.
# (Not vptr: its run time needs the C++ driver to link, and nothing here has virtual functions.)
AC_DEFUN([AX_SMALTI_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers], [build with AddressSanitizer and UBSan])])
  AS_IF([test "x$enable_sanitizers" = xyes],
    [SMALTI_SANITIZE="-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
     SMALTI_KERNELS="-fno-sanitize=undefined"])
  AC_SUBST([SMALTI_SANITIZE])
])

# AX_SMALTI_FUZZERS: --enable-fuzzers builds tests/fuzz with libFuzzer, too, of what sanitizers look at (clang only).
AC_DEFUN([AX_SMALTI_FUZZERS], [
  AC_ARG_ENABLE([fuzzers], [AS_HELP_STRING([--enable-fuzzers], [build the fuzzers, too (needs --enable-sanitizers and CC=clang)])])
  AS_IF([test "x$enable_fuzzers" = xyes], [
    AS_IF([test "x$enable_sanitizers" = xyes], [],
      [AC_MSG_ERROR([--enable-fuzzers needs --enable-sanitizers: what a fuzzer finds is seen by them])])
    save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -fsanitize=fuzzer-no-link"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [],
      [AC_MSG_ERROR([--enable-fuzzers needs clang with libFuzzer: configure with CC=clang CXX=clang++ (Debian: clang libclang-rt-14-dev)])])
    CFLAGS=$save_CFLAGS
    SMALTI_SANITIZE="$SMALTI_SANITIZE -fsanitize=fuzzer-no-link"
    SMALTI_KERNELS="-fno-sanitize=all" # no fuzzer is for them
  ])
  AC_SUBST([SMALTI_KERNELS])
  AC_SUBST([LIB_FUZZING_ENGINE], [-fsanitize=fuzzer])
  AM_CONDITIONAL([FUZZERS], [test "x$enable_fuzzers" = xyes])
])
