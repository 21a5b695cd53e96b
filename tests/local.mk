LDADD = libharness.la libbench.la libcli.la libserve.la libreport.la libcore.la $(CUNIT_LIBS)
check_LTLIBRARIES = libharness.la
libharness_la_SOURCES = \
	tests/codelet_case.h \
	tests/config_case.c tests/config_case.h \
	tests/datasets.c tests/datasets.h \
	tests/embedded.c tests/embedded.h \
	tests/gguf_file.c tests/gguf_file.h \
	tests/golden.c tests/golden.h \
	tests/device_session.h tests/driver.h tests/moved.h tests/harness.c tests/harness.h \
	tests/judge.c tests/judge.h \
	tests/kernel_case.c tests/kernel_case.h \
	tests/w8a8_case.h \
	tests/matmul_case.c tests/matmul_case.h \
	tests/images.c tests/images.h \
	tests/sanitized.h \
	tests/png_chunk.c tests/png_chunk.h \
	tests/shards.c tests/shards.h \
	tests/stage.c tests/stage.h \
	tests/synthetic.c tests/synthetic.h \
	tests/vae_image.c tests/vae_image.h

libharness_la_SOURCES += tests/bad_dataset.c tests/bad_dataset.h
libharness_la_SOURCES += tests/attention_case.c tests/attention_case.h
libharness_la_SOURCES += tests/golden_features.c tests/golden_features.h
libharness_la_SOURCES += tests/received.c tests/received.h
libharness_la_SOURCES += tests/toy_model.c tests/toy_model.h
libharness_la_SOURCES += tests/train_graph.c tests/train_graph.h
# A test is tests/test_SUBJECT.c with a table of CUnit cases. The tests of a room are one program, tests/run_ROOM, and each
# tests/test_SUBJECT is a link to it, by whose name the program knows which table to run. A word in a room's list adds a test.
base_tests = tests/test_bins tests/test_error tests/test_file tests/test_fp8 tests/test_interpolator tests/test_json tests/test_map \
	tests/test_noise tests/test_numbers tests/test_offload tests/test_parse tests/test_pool \
	tests/test_queue tests/test_rate tests/test_set
kernels_tests = tests/test_attention tests/test_attention_bits tests/test_backward tests/test_conv tests/test_dense \
	tests/test_elementwise tests/test_isa tests/test_matmul tests/test_matmul_rows8 tests/test_matmul_raw tests/test_norms \
	tests/test_onednn tests/test_optimizers tests/test_resize tests/test_w8a8_amx tests/test_w8a8_bytes
files_tests = tests/test_adapter_files tests/test_archives tests/test_bad_dataset tests/test_caption tests/test_checkpoint \
	tests/test_config tests/test_config_scheduler tests/test_dataset tests/test_dataset_damage \
	tests/test_dataset_files tests/test_dataset_sources tests/test_deflate tests/test_exif tests/test_gguf \
	tests/test_image tests/test_image_damage tests/test_image_writer tests/test_input_image \
	tests/test_latents tests/test_line_index tests/test_npy tests/test_prompts tests/test_safetensors tests/test_scales tests/test_shard \
	tests/test_tokenizer tests/test_tokenizer_json
store_tests = tests/test_export tests/test_extract tests/test_extract_sizes tests/test_features_reader tests/test_run_log \
	tests/test_shared_list \
	tests/test_store_claims tests/test_store_directory tests/test_store_failures tests/test_store_lock \
	tests/test_store_ranges tests/test_store_shards tests/test_verify
rt_tests = tests/test_counting tests/test_counts tests/test_crossings tests/test_cudnn tests/test_device_tiles tests/test_driver \
	tests/test_environment tests/test_fusion tests/test_insertion tests/test_lanes tests/test_memory_limit \
	tests/test_perf_models tests/test_places tests/test_policies tests/test_rates tests/test_schedule \
	tests/test_session tests/test_slowdown tests/test_tile_forms tests/test_timetable tests/test_topology tests/test_transfers
graphs_tests = tests/test_adapters tests/test_attend_tile tests/test_batch tests/test_codelets tests/test_codelets_diffusion tests/test_codelets_t5 \
	tests/test_coded_weights tests/test_codelets_vae tests/test_decode_places tests/test_device_linear tests/test_device_plans \
	tests/test_devices tests/test_diffusion tests/test_features tests/test_full_geometry tests/test_generate \
	tests/test_golden tests/test_hostile_models tests/test_image_to_image tests/test_make_model tests/test_model tests/test_plans tests/test_quantize tests/test_step_cache \
	tests/test_strategies tests/test_strategy_choice tests/test_strategy_names tests/test_synthetic \
	tests/test_t5 tests/test_vae tests/test_vae_plans tests/test_vae_scale
train_tests = tests/test_adapter_training tests/test_diffusion_loss tests/test_null_caption tests/test_parameters tests/test_rerank tests/test_saved \
	tests/test_retrieve tests/test_sampler_runs tests/test_samplers tests/test_tensors tests/test_toy_model tests/test_train_graph \
	tests/test_train_places tests/test_training tests/test_training_data tests/test_training_draws
cli_tests = tests/test_arguments tests/test_bench tests/test_options tests/test_progress tests/test_report \
	tests/test_serve

room_tests = $(base_tests) $(kernels_tests) $(files_tests) $(store_tests) $(rt_tests) $(graphs_tests) $(train_tests) $(cli_tests)
check_PROGRAMS += tests/run_base
tests_run_base_SOURCES = tests/runner.c $(base_tests:=.c)
$(base_tests): tests/run_base$(EXEEXT)
check_PROGRAMS += tests/run_kernels
tests_run_kernels_SOURCES = tests/runner.c $(kernels_tests:=.c)
$(kernels_tests): tests/run_kernels$(EXEEXT)
check_PROGRAMS += tests/run_files
tests_run_files_SOURCES = tests/runner.c $(files_tests:=.c)
$(files_tests): tests/run_files$(EXEEXT)
check_PROGRAMS += tests/run_store
tests_run_store_SOURCES = tests/runner.c $(store_tests:=.c)
$(store_tests): tests/run_store$(EXEEXT)
check_PROGRAMS += tests/run_rt
tests_run_rt_SOURCES = tests/runner.c tests/counts.def tests/template_driver.c tests/template_driver.h $(rt_tests:=.c)
$(rt_tests): tests/run_rt$(EXEEXT)
check_PROGRAMS += tests/run_graphs
tests_run_graphs_SOURCES = tests/runner.c $(graphs_tests:=.c)
$(graphs_tests): tests/run_graphs$(EXEEXT)
check_PROGRAMS += tests/run_train
tests_run_train_SOURCES = tests/runner.c $(train_tests:=.c)
$(train_tests): tests/run_train$(EXEEXT)
check_PROGRAMS += tests/run_cli
tests_run_cli_SOURCES = tests/runner.c $(cli_tests:=.c)
$(cli_tests): tests/run_cli$(EXEEXT)
$(room_tests):
	$(AM_V_GEN)ln -sf $$(basename $<) $@
CLEANFILES += $(room_tests)
tests_run_files_SOURCES += tests/sha256.c tests/sha256.h
tests_run_files_LDADD = $(LDADD) -lz
tests_run_store_LDADD = libfolder.la $(LDADD)

# A program of its own, since it is linked otherwise.
check_PROGRAMS += tests/test_allocations
tests_test_allocations_SOURCES = tests/runner.c tests/test_allocations.c
tests_test_allocations_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=smalti_calloc -Wl,--wrap=smalti_aligned_alloc
check_LTLIBRARIES += libownpolicy.la
libownpolicy_la_SOURCES = tests/own_policy.c
libownpolicy_la_LIBADD = $(STARPU_LIBS)
libownpolicy_la_LDFLAGS = -module -avoid-version -rpath /nowhere
libharness_la_SOURCES += \
	tests/root.c tests/root.h \
	tests/rows.c tests/rows.h \
	tests/store_fixture.c tests/store_fixture.h
include tests/cuda/local.mk

# A test of the command is tests/SUBJECT.sh, run with the programs' paths in SMALTI and SMALTI_BENCH: one line here adds it.
TEST_EXTENSIONS = .sh
dist_check_SCRIPTS =
dist_check_SCRIPTS += tests/oclgrind.sh
dist_check_SCRIPTS += tests/faults.sh
dist_check_SCRIPTS += tests/lost.sh
dist_check_SCRIPTS += tests/train_devices.sh
dist_check_SCRIPTS += tests/devices.sh
dist_check_SCRIPTS += tests/examples.sh
dist_check_SCRIPTS += tests/isa.sh
# Those above take minutes: they are begun first, so that none of them runs alone at the end.
dist_check_SCRIPTS += tests/topology.sh
dist_check_SCRIPTS += tests/transfer_report.sh
dist_check_SCRIPTS += tests/bench.sh
dist_check_SCRIPTS += tests/cuda.sh
dist_check_SCRIPTS += tests/cuda_repeats.sh
dist_check_SCRIPTS += tests/cuda_vectors.sh
dist_check_SCRIPTS += tests/convert_pth.sh
dist_check_SCRIPTS += tests/decode.sh
dist_check_SCRIPTS += tests/decode_memory.sh
dist_check_SCRIPTS += tests/device_memory.sh
dist_check_SCRIPTS += tests/directories.sh
dist_check_SCRIPTS += tests/encode.sh
dist_check_SCRIPTS += tests/extract_bad.sh
dist_check_SCRIPTS += tests/features_h5py.sh
dist_check_SCRIPTS += tests/parquet_to_jsonl.sh
dist_check_SCRIPTS += tests/environments.sh
dist_check_SCRIPTS += tests/export.sh
dist_check_SCRIPTS += tests/export_disk.sh
dist_check_SCRIPTS += tests/export_share.sh
dist_check_SCRIPTS += tests/extract.sh
dist_check_SCRIPTS += tests/lora.sh tests/train_lora.sh tests/step_cache.sh
dist_check_SCRIPTS += tests/extract_golden.sh
dist_check_SCRIPTS += tests/extract_kill.sh
dist_check_SCRIPTS += tests/generate_basic.sh
dist_check_SCRIPTS += tests/generate_disk.sh
dist_check_SCRIPTS += tests/generate_errors.sh
dist_check_SCRIPTS += tests/generate_ids.sh
dist_check_SCRIPTS += tests/generate_image.sh
dist_check_SCRIPTS += tests/generate_progress.sh
dist_check_SCRIPTS += tests/generate_resume.sh
dist_check_SCRIPTS += tests/generate_share.sh
dist_check_SCRIPTS += tests/make_model.sh
dist_check_SCRIPTS += tests/models.sh
dist_check_SCRIPTS += tests/mpi.sh tests/mpi_train.sh tests/mpi_vae.sh
dist_check_SCRIPTS += tests/policies.sh
dist_check_SCRIPTS += tests/python.sh
dist_check_SCRIPTS += tests/random_lines.sh
dist_check_SCRIPTS += tests/readme.sh
dist_check_SCRIPTS += tests/replay.sh
dist_check_SCRIPTS += tests/report.sh
dist_check_SCRIPTS += tests/serve.sh
dist_check_SCRIPTS += tests/serve_soak.sh
dist_check_SCRIPTS += tests/reproducible.sh
dist_check_SCRIPTS += tests/schedule.sh
dist_check_SCRIPTS += tests/signals.sh
dist_check_SCRIPTS += tests/spack.sh
dist_check_SCRIPTS += tests/shrink.sh
dist_check_SCRIPTS += tests/simulate.sh
dist_check_SCRIPTS += tests/slurm.sh
dist_check_SCRIPTS += tests/slurm_array.sh
dist_check_SCRIPTS += tests/store_kill.sh
dist_check_SCRIPTS += tests/store_stop.sh
dist_check_SCRIPTS += tests/strategies.sh
dist_check_SCRIPTS += tests/strategy_auto.sh
dist_check_SCRIPTS += tests/train.sh
dist_check_SCRIPTS += tests/completion.sh
dist_check_SCRIPTS += tests/retrieve.sh
dist_check_SCRIPTS += tests/retrieve_devices.sh
dist_check_SCRIPTS += tests/verify.sh
dist_check_SCRIPTS += tests/weights.sh

# What scripts run besides the command: no tests themselves.
EXTRA_PROGRAMS += tests/store_worker
EXTRA_PROGRAMS += tests/make_bad_dataset
CLEANFILES += tests/make_bad_dataset
tests/extract_bad.log: tests/make_bad_dataset$(EXEEXT)
# Every script may preload them, so they are made before any test.
check_LTLIBRARIES += libfault.la
libfault_la_SOURCES = tests/fault.c tests/fault_streams.c tests/fault.h
libfault_la_LDFLAGS = -module -avoid-version -rpath /nowhere
tests/cuda.log tests/extract.log tests/extract_kill.log tests/faults.log tests/slurm.log tests/slurm_array.log tests/store_kill.log \
tests/store_stop.log tests/verify.log: tests/store_worker$(EXEEXT)

check_LTLIBRARIES += libcountlocks.la
libcountlocks_la_SOURCES = tests/count_locks.c
libcountlocks_la_LDFLAGS = -module -avoid-version -rpath /nowhere
check_LTLIBRARIES += liblatenaps.la
liblatenaps_la_SOURCES = tests/late_naps.c
liblatenaps_la_LDFLAGS = -module -avoid-version -rpath /nowhere

if OPENCL
check_LTLIBRARIES += liblose_opencl.la
liblose_opencl_la_SOURCES = tests/lose_opencl.c
liblose_opencl_la_LDFLAGS = -module -avoid-version -rpath /nowhere
check_LTLIBRARIES += libcountbuffers.la
libcountbuffers_la_SOURCES = tests/count_buffers.c
libcountbuffers_la_LDFLAGS = -module -avoid-version -rpath /nowhere
endif

EXTRA_PROGRAMS += tests/forward
CLEANFILES += tests/forward
tests/convert_pth.log: tests/forward$(EXEEXT)

EXTRA_PROGRAMS += tests/shown
CLEANFILES += tests/shown
tests/readme.log: tests/shown$(EXEEXT)

# What scripts run of the programs above: `make check check_PROGRAMS= TESTS=...` makes only what its tests need.
tests/cuda.log: tests/test_attend_tile tests/test_device_linear tests/test_device_tiles tests/test_devices tests/test_fusion \
	tests/test_generate tests/test_device_plans tests/test_golden tests/test_retrieve tests/test_slowdown tests/test_transfers
tests/devices.log: tests/test_adapter_training tests/test_adapters tests/test_coded_weights tests/test_generate tests/test_golden tests/test_image_to_image
tests/isa.log: tests/test_generate tests/test_golden tests/test_matmul_rows8 tests/test_matmul_raw tests/test_synthetic
tests/oclgrind.log: tests/test_devices

# Made for the tests that name it here, and by none else.
EXTRA_PROGRAMS += tests/make_features
CLEANFILES += tests/make_features
tests/features_h5py.log: tests/make_features$(EXEEXT)
# The same with keys of one's own and values that are numbers.
check_LTLIBRARIES += libfolder.la
libfolder_la_SOURCES = tests/features_directory.c tests/features_directory.h
EXTRA_PROGRAMS += tests/make_directory
tests_make_directory_LDADD = libfolder.la libcore.la
CLEANFILES += tests/make_directory
tests/export.log tests/export_disk.log tests/export_share.log tests/faults.log tests/report.log: tests/make_directory$(EXEEXT)

TESTS += $(dist_check_SCRIPTS) $(room_tests) tests/test_allocations tests/cuda/test_twins

# Tests measure nothing that a user's runs should be scheduled by, so StarPU's performance models stay here.
# Without hwloc's PCI component: the library below it leaks when hwloc unloads it, which no suppression can name.
# The sanitizer's guess at where a library's thread-local variables lie is garbage at one address in 256, which ends the
# search for leaks: they are found through the thread's own memory without it.
AM_TESTS_ENVIRONMENT = \
	SMALTI='$(abs_top_builddir)/smalti'; export SMALTI; \
	SMALTI_BENCH='$(abs_top_builddir)/smalti-bench'; export SMALTI_BENCH; \
	SMALTI_TESTDATA='$(abs_top_srcdir)/tests/data'; export SMALTI_TESTDATA; \
	SMALTI_OWN_POLICY='$(abs_top_builddir)/.libs/libownpolicy.so'; export SMALTI_OWN_POLICY; \
	SMALTI_POLICIES='$(abs_top_builddir)/policies/.libs'; export SMALTI_POLICIES; \
	SMALTI_MODELS='$(abs_top_srcdir)/models'; export SMALTI_MODELS; \
	STARPU_HOME='$(abs_top_builddir)/tests'; export STARPU_HOME; \
	HWLOC_COMPONENTS=-pci; export HWLOC_COMPONENTS; \
	NVCC='$(NVCC)'; export NVCC; \
	: $${POCL_CACHE_DIR:='$(abs_top_builddir)/tests/.pocl'}; export POCL_CACHE_DIR; \
	LSAN_OPTIONS='suppressions=$(abs_top_srcdir)/tests/lsan.supp:print_suppressions=0:intercept_tls_get_addr=0'; export LSAN_OPTIONS;

clean-local:
	rm -rf tests/.starpu tests/.pocl

# A fuzzer is tests/fuzz/fuzz_SUBJECT.c, its first inputs tests/fuzz/corpus/SUBJECT/*: a word here adds it. All are one program,
# and each a link to it, as tests are.
if FUZZERS
fuzzers = tests/fuzz/fuzz_adapter tests/fuzz/fuzz_caption tests/fuzz/fuzz_config tests/fuzz/fuzz_dataset tests/fuzz/fuzz_gguf tests/fuzz/fuzz_image tests/fuzz/fuzz_npy \
	tests/fuzz/fuzz_parse tests/fuzz/fuzz_png tests/fuzz/fuzz_prompts tests/fuzz/fuzz_run tests/fuzz/fuzz_safetensors \
	tests/fuzz/fuzz_schedule tests/fuzz/fuzz_serve tests/fuzz/fuzz_shard tests/fuzz/fuzz_spiece tests/fuzz/fuzz_tokenizer
EXTRA_PROGRAMS += tests/fuzz/run_fuzz
tests_fuzz_run_fuzz_SOURCES = tests/fuzz/run_fuzz.c tests/fuzz/fuzz.h $(fuzzers:=.c)
tests_fuzz_run_fuzz_LDADD = libserve.la libcore.la $(LIB_FUZZING_ENGINE)
fuzzers: $(fuzzers)
$(fuzzers): tests/fuzz/run_fuzz$(EXEEXT)
	$(AM_V_GEN)ln -sf run_fuzz $@
CLEANFILES += $(fuzzers) tests/fuzz/run_fuzz
endif
.PHONY: fuzzers

EXTRA_DIST += tests/command.sh tests/device_images.sh tests/ranks.sh tests/shared.sh tests/store.sh tests/examples.py tests/features_h5py.py \
	tests/convert_pth.py tests/features_python.py tests/outputs.py tests/python_package.py tests/browser.py tests/serve_soak.py tests/parquet_to_jsonl.py tests/lsan.supp \
	tests/data tests/fuzz/corpus tests/installed.sh

installcheck-local:
	PKG_CONFIG_PATH="$(pkgconfigdir)" CC='$(CC)' CXX='$(CXX)' \
		$(top_srcdir)/tests/installed.sh $(bindir) $(top_srcdir)/docs/example.c
