# Measuring: what `smalti bench` runs. It is the command's and the tests', not the library's.
noinst_LTLIBRARIES += libbench.la
libbench_la_SOURCES = \
	src/bench/buffers.c \
	src/bench/cases.c src/bench/cases.def src/bench/cases.h \
	src/bench/fill.c src/bench/fill.h \
	src/bench/geometry.c src/bench/geometry.h \
	src/bench/kernels.c src/bench/kernels.h \
	src/bench/make_model.c src/bench/make_model.h \
	src/bench/memory.c src/bench/memory.h \
	src/bench/images.c src/bench/images.h \
	src/bench/roofline.c src/bench/roofline.h \
	src/bench/stage_dit.c \
	src/bench/stage_parts.h \
	src/bench/stage_t5.c \
	src/bench/stage_vae.c \
	src/bench/stages.c src/bench/stages.h \
	src/bench/statistics.c src/bench/statistics.h \
	src/bench/weights.c src/bench/weights.h
