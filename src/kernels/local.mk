# Sources of src/kernels
# The kernels of cpu/ are compiled once per instruction set (see kernels.def).
cpu_kernels = \
	src/kernels/cpu/attention.c \
	src/kernels/cpu/backward.c \
	src/kernels/cpu/elementwise.c \
	src/kernels/cpu/measure.c \
	src/kernels/cpu/norms.c \
	src/kernels/cpu/raw.c src/kernels/cpu/raw_parts.h src/kernels/cpu/raw_widen.h src/kernels/cpu/transpose.h \
	src/kernels/cpu/table.c \
	src/kernels/cpu/update_rows.c src/kernels/cpu/update_rows.h \
	src/kernels/cpu/w8a8.c src/kernels/cpu/w8a8_tiles.h src/kernels/cpu/w8a8_lanes.h src/kernels/cpu/w8a8_bytes.h \
	src/kernels/cpu/w8a8_pairs.h \
	src/kernels/cpu/winograd.c src/kernels/cpu/winograd.h \
	src/kernels/cpu/winograd_pack.c \
	src/kernels/cpu/attention_parts.h \
	src/kernels/cpu/workspace.h \
	src/kernels/cpu/suffix.h \
	src/kernels/cpu/vector.h \
	src/kernels/cpu/vector_math.h

noinst_LTLIBRARIES += libcpu_generic.la
libcpu_generic_la_SOURCES = $(cpu_kernels)
libcpu_generic_la_CPPFLAGS = $(AM_CPPFLAGS) -DSMALTI_CPU_ISA=generic
libcpu_generic_la_CFLAGS = $(AM_CFLAGS) $(SMALTI_KERNELS)
libcore_la_LIBADD += libcpu_generic.la

if X86_64
avx512_flags = -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
noinst_LTLIBRARIES += libcpu_avx2.la libcpu_avx512.la libcpu_avx512_bf16.la libcpu_amx.la
libcpu_avx2_la_SOURCES = $(cpu_kernels)
libcpu_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DSMALTI_CPU_ISA=avx2
libcpu_avx2_la_CFLAGS = $(AM_CFLAGS) $(SMALTI_KERNELS) -mavx2 -mfma -mf16c
libcpu_avx512_la_SOURCES = $(cpu_kernels)
libcpu_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DSMALTI_CPU_ISA=avx512
libcpu_avx512_la_CFLAGS = $(plain_cflags) $(avx512_flags)
cpu_bf16_kernels = $(cpu_kernels) \
	src/kernels/cpu/attention_bf16.c \
	src/kernels/cpu/dense_bf16.c \
	src/kernels/cpu/raw_bf16.c \
	src/kernels/cpu/amx.h src/kernels/cpu/tiles.h src/kernels/cpu/w8a8_amx.h
libcpu_avx512_bf16_la_SOURCES = $(cpu_bf16_kernels)
libcpu_avx512_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DSMALTI_CPU_ISA=avx512_bf16
libcpu_avx512_bf16_la_CFLAGS = $(plain_cflags) $(avx512_flags) -mavx512vnni -mavx512bf16
libcpu_amx_la_SOURCES = $(cpu_bf16_kernels)
libcpu_amx_la_CPPFLAGS = $(AM_CPPFLAGS) -DSMALTI_CPU_ISA=amx
amx_flags = $(avx512_flags) -mavx512vnni -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8
libcpu_amx_la_CFLAGS = $(plain_cflags) $(amx_flags)
libcore_la_LIBADD += libcpu_avx2.la libcpu_avx512.la libcpu_avx512_bf16.la libcpu_amx.la
endif

libcore_la_SOURCES += \
	src/kernels/attention.h src/kernels/backward.h src/kernels/bias_form.h src/kernels/conv.h src/kernels/isa.h \
	src/kernels/matmul.h src/kernels/groupnorm.h src/kernels/scratch.h \
	src/kernels/isa.c \
	src/kernels/scratch.c \
	src/kernels/conditioning.h src/kernels/layout.h src/kernels/resize.h \
	src/kernels/cpu/conditioning.c \
	src/kernels/cpu/dense.c \
	src/kernels/cpu/contrast.c src/kernels/contrast.h \
	src/kernels/cpu/matches.c src/kernels/match.h src/kernels/matches.h \
	src/kernels/cpu/rows.c src/kernels/rows.h \
	src/kernels/cpu/layout.c \
	src/kernels/cpu/conv.c \
	src/kernels/cpu/attend.c \
	src/kernels/cpu/dispatch.c src/kernels/kernels.def src/kernels/kernels.h \
	src/kernels/cpu/groupnorm.c \
	src/kernels/cpu/matmul.c \
	src/kernels/cpu/matmul_raw.c \
	src/kernels/matmul_w8a8.h src/kernels/cpu/matmul_w8a8.c \
	src/kernels/cpu/onednn.c src/kernels/cpu/onednn.h \
	src/kernels/cpu/onednn_api.c src/kernels/cpu/onednn_api.h \
	src/kernels/optimizers.h src/kernels/packed.h src/kernels/update_rules.h src/kernels/cpu/optimizers.c \
	src/kernels/cpu/pack.c \
	src/kernels/cpu/product.c src/kernels/cpu/product.h \
	src/kernels/cpu/resize.c \
	src/kernels/epilogue.h src/kernels/many.h src/kernels/moments.h

# What devices run: one text, which src/devices/opencl.c has in it as it is, src/devices/cuda.c compiled.
device_kernels = \
	src/kernels/device/program.cl \
	src/kernels/device/arguments.h \
	src/kernels/device/attention.cl \
	src/kernels/device/attention_tensor.cl \
	src/kernels/device/backward.cl \
	src/kernels/device/conditioning.cl \
	src/kernels/device/conv.cl \
	src/kernels/device/dialect.h \
	src/kernels/device/eights.h \
	src/kernels/device/elementwise.cl \
	src/kernels/device/layout.cl \
	src/kernels/device/linear.cl \
	src/kernels/device/norms.cl \
	src/kernels/device/parts.h \
	src/kernels/device/retrieve.cl \
	src/kernels/device/sampler.cl \
	src/kernels/device/softmax.cl \
	src/kernels/device/sums.h \
	src/kernels/device/text.cl \
	src/kernels/device/update.cl \
	src/kernels/device/warp.h
device_headers = \
	codelets/argument_structs.h codelets/codelets.def src/base/dtype_enum.h src/kernels/epilogue.h src/kernels/many.h src/kernels/match.h src/kernels/moments.h \
	src/kernels/update_rules.h src/samplers/element.h src/samplers/step.h
# What compute capability 9.0 alone runs, which src/devices/cuda_attention.c has in it.
hopper_kernels = \
	src/kernels/device/attention_hopper.cl \
	src/kernels/device/hopper.cl \
	src/kernels/device/hopper.h \
	src/kernels/device/hopper_parts.h
EXTRA_DIST += $(device_kernels) $(hopper_kernels)
CLEANFILES += src/kernels/device/opencl.cl src/kernels/device/cuda.fatbin src/kernels/device/hopper.fatbin
# Drivers keep what they have compiled by its text, in which each compiler leaves other white space.
src/kernels/device/opencl.cl: $(device_kernels) $(device_headers)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CC) -E -P -x c -undef -nostdinc -DSMALTI_OPENCL -I$(top_srcdir)/src \
		-I$(top_srcdir) $(srcdir)/src/kernels/device/program.cl >$@.loose && \
		sed 's/[[:space:]][[:space:]]*/ /g; s/^ //; s/ $$//; /^$$/d' $@.loose >$@.part && rm $@.loose && mv $@.part $@
src/kernels/device/cuda.fatbin: $(device_kernels) $(device_headers)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVCC) -x cu -fatbin $(CUDA_FLAGS) -I$(top_srcdir)/src \
		-I$(top_srcdir) -o $@.part $(srcdir)/src/kernels/device/program.cl && mv $@.part $@
src/kernels/device/hopper.fatbin: $(hopper_kernels) src/kernels/device/dialect.h src/kernels/device/warp.h src/base/dtype_enum.h
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVCC) -x cu -fatbin $(HOPPER_FLAGS) -I$(top_srcdir)/src \
		-I$(top_srcdir) -o $@.part $(srcdir)/src/kernels/device/hopper.cl && mv $@.part $@
