# The device kernels compiled for CPUs, by CUDA's branch of their dialect.
check_LTLIBRARIES += libtwins.la
libtwins_la_SOURCES = \
	tests/cuda/emulator/cuda_fp16.h \
	tests/cuda/fibers.cc tests/cuda/fibers.h \
	tests/cuda/hopper.h tests/cuda/tensor_map.h tests/cuda/warp.h \
	tests/cuda/twins.cc tests/cuda/twins.h
# Fortified, longjmp() takes a fiber's stack for a mistake.
libtwins_la_CPPFLAGS = -I$(srcdir)/tests/cuda/emulator -I$(top_srcdir)/src -I$(top_srcdir) -I$(srcdir)/tests -I$(builddir)/tests \
	-U_FORTIFY_SOURCE
libtwins_la_CXXFLAGS = $(AM_CXXFLAGS) -Wno-unknown-pragmas -fno-math-errno
$(libtwins_la_OBJECTS): tests/cuda/kernels.def
tests/cuda/kernels.def: $(device_kernels) $(hopper_kernels)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		sed -n -e 's/^KERNEL_FORMS(\([a-z0-9_]*\),.*/KERNEL_OF(\1_f32) KERNEL_OF(\1_f16) KERNEL_OF(\1_bf16)/p' -e t \
		-e 's/^KERNEL_HALVES(\([a-z0-9_]*\),.*/KERNEL_OF(\1_f16) KERNEL_OF(\1_bf16)/p' -e t \
		-e 's/^KERNEL[A-Z_]*(\([a-z0-9_]*\)[,)].*/KERNEL_OF(\1)/p' $(device_kernels:%=$(srcdir)/%) $(hopper_kernels:%=$(srcdir)/%) >$@.part && mv $@.part $@
CLEANFILES += tests/cuda/kernels.def

check_PROGRAMS += tests/cuda/test_twins
tests_cuda_test_twins_SOURCES = tests/cuda/test_twins.cc
tests_cuda_test_twins_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_cuda_test_twins_LDADD = libtwins.la $(LDADD)

# What stands in for CUDA's libraries where a test puts it in front of them.
if CUDA
check_LTLIBRARIES += libstandin.la
libstandin_la_SOURCES = \
	src/base/dtype.c \
	tests/cuda/blas.cc \
	tests/cuda/memory.cc tests/cuda/memory.h \
	tests/cuda/nvml.cc \
	tests/cuda/runtime.cc \
	tests/cuda/streams.cc tests/cuda/streams.h
libstandin_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
libstandin_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=default
libstandin_la_LIBADD = libtwins.la
libstandin_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere \
	-Wl,--version-script=$(srcdir)/tests/cuda/standin.map
if CUDNN
libstandin_la_SOURCES += tests/cuda/dnn.cc
# In a folder of its own, where nothing but test_cudnn finds it.
check_LTLIBRARIES += tests/cuda/libcuda.la
tests_cuda_libcuda_la_SOURCES = tests/cuda/driver.c
tests_cuda_libcuda_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
tests_cuda_libcuda_la_LDFLAGS = -rpath /nowhere -version-number 1
tests/test_cudnn: | tests/cuda/libcuda.la
endif
endif
EXTRA_DIST += tests/cuda/standin.map
