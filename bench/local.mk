# Measuring: the program smalti-bench; what the tests link of it has no command in it.
noinst_LTLIBRARIES += libbench.la
libbench_la_LIBADD = $(GLPK_LIBS)
libbench_la_SOURCES = \
	bench/buffers.c \
	bench/cases.c bench/cases.def bench/cases.h \
	bench/compare.c bench/compare.h \
	bench/fill.c bench/fill.h \
	bench/geometry.c bench/geometry.h \
	bench/images.c bench/images.h \
	bench/kernels.c bench/kernels.h \
	bench/make_model.c bench/make_model.h \
	bench/memory.c bench/memory.h \
	bench/peak.c bench/peak.h \
	bench/roofline.c bench/roofline.h \
	bench/stage_dit.c \
	bench/stage_parts.h \
	bench/stage_t5.c \
	bench/stage_train.c \
	bench/stage_vae.c \
	bench/stages.c bench/stages.h \
	bench/schedule.h bench/schedule_bounds.c bench/schedule_idle.c bench/schedule_read.c \
	bench/linear_program.c bench/linear_program.h bench/schedule_linear.c bench/schedule_linear.h bench/schedule_moves.c \
	bench/timetable.c bench/timetable.h bench/timetable_links.c bench/timetable_model.c bench/timetable_search.c bench/timetable_window.c \
	bench/regret.c bench/regret.h \
	bench/statistics.c bench/statistics.h \
	bench/weights.c bench/weights.h

bin_PROGRAMS += smalti-bench
smalti_bench_SOURCES = \
	bench/ablation.c bench/ablation.h \
	bench/bench.h \
	bench/generate_command.c \
	bench/kernels_command.c \
	bench/main.c \
	bench/make_model_command.c \
	bench/online.c bench/online.h \
	bench/regret_line.c \
	bench/report.c bench/report.h \
	bench/schedule_command.c bench/schedule_page.c bench/schedule_page.h \
	bench/schedule_runs.c bench/schedule_runs.h \
	bench/stages_command.c \
	bench/train_command.c
nodist_EXTRA_smalti_bench_SOURCES = force-c++-linking-smalti-bench.cc
smalti_bench_LDADD = libbench.la libcli.la libreport.la libcore.la

bench_pages = \
	docs/smalti-bench.1 \
	docs/smalti-bench-generate.1 \
	docs/smalti-bench-kernels.1 \
	docs/smalti-bench-make-model.1 \
	docs/smalti-bench-schedule.1 \
	docs/smalti-bench-stages.1 \
	docs/smalti-bench-train.1

# Built by `make bench`; never run by the tests, for a busy machine would fail them.
EXTRA_PROGRAMS = bench/batch
bench_batch_LDADD = libbench.la libcore.la
CLEANFILES += $(EXTRA_PROGRAMS)
EXTRA_DIST += bench/peers bench/extract_processes.py bench/features_epoch.py bench/vae_growth.py

.PHONY: bench
bench: bench/batch$(EXEEXT)
