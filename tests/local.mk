# A test program is tests/test_SUBJECT.c with its own table of CUnit tests: one line here adds it.
if !FUZZERS
LDADD = libharness.la libbench.la libcli.la libcore.la $(CUNIT_LIBS)
endif
check_LTLIBRARIES = libharness.la
libharness_la_SOURCES = \
	tests/codelet_case.h \
	tests/config_case.c tests/config_case.h \
	tests/datasets.c tests/datasets.h \
	tests/embedded.c tests/embedded.h \
	tests/golden.c tests/golden.h \
	tests/device_session.h tests/driver.h tests/moved.h tests/harness.c tests/harness.h \
	tests/judge.c tests/judge.h \
	tests/kernel_case.c tests/kernel_case.h \
	tests/matmul_case.c tests/matmul_case.h \
	tests/images.c tests/images.h \
	tests/sanitized.h \
	tests/png_chunk.c tests/png_chunk.h \
	tests/shards.c tests/shards.h \
	tests/stage.c tests/stage.h \
	tests/synthetic.c tests/synthetic.h \
	tests/vae_image.c tests/vae_image.h

check_PROGRAMS += tests/test_error
check_PROGRAMS += tests/test_arguments
check_PROGRAMS += tests/test_parse
check_PROGRAMS += tests/test_noise
check_PROGRAMS += tests/test_strategies
check_PROGRAMS += tests/test_strategy_choice
check_PROGRAMS += tests/test_strategy_names
check_PROGRAMS += tests/test_transfers
check_PROGRAMS += tests/test_decode_places
check_PROGRAMS += tests/test_tile_forms
check_PROGRAMS += tests/test_tokenizer
check_PROGRAMS += tests/test_tokenizer_json
check_PROGRAMS += tests/test_caption
check_PROGRAMS += tests/test_conv
check_PROGRAMS += tests/test_matmul
check_PROGRAMS += tests/test_matmul_raw
check_PROGRAMS += tests/test_dense
check_PROGRAMS += tests/test_onednn
check_PROGRAMS += tests/test_fusion
check_PROGRAMS += tests/test_generate
check_PROGRAMS += tests/test_bins
check_PROGRAMS += tests/test_interpolator
check_PROGRAMS += tests/test_resize
check_PROGRAMS += tests/test_rate
check_PROGRAMS += tests/test_rates
check_PROGRAMS += tests/test_set
check_PROGRAMS += tests/test_shard
check_PROGRAMS += tests/test_deflate
check_PROGRAMS += tests/test_latents
check_PROGRAMS += tests/test_npy
check_PROGRAMS += tests/test_input_image
tests_test_input_image_SOURCES = tests/test_input_image.c tests/sha256.c tests/sha256.h
check_PROGRAMS += tests/test_dataset
check_PROGRAMS += tests/test_dataset_damage
check_PROGRAMS += tests/test_dataset_files
check_PROGRAMS += tests/test_dataset_sources
tests_test_dataset_sources_LDADD = $(LDADD) -lz
check_PROGRAMS += tests/test_bad_dataset
libharness_la_SOURCES += tests/bad_dataset.c tests/bad_dataset.h
check_PROGRAMS += tests/test_options
check_PROGRAMS += tests/test_serve
check_PROGRAMS += tests/test_exif
check_PROGRAMS += tests/test_image
check_PROGRAMS += tests/test_image_damage
check_PROGRAMS += tests/test_image_writer
check_PROGRAMS += tests/test_progress
check_PROGRAMS += tests/test_prompts
check_PROGRAMS += tests/test_attention
check_PROGRAMS += tests/test_attention_bits
libharness_la_SOURCES += tests/attention_case.c tests/attention_case.h
check_PROGRAMS += tests/test_elementwise
check_PROGRAMS += tests/test_backward
check_PROGRAMS += tests/test_isa
check_PROGRAMS += tests/test_norms
check_PROGRAMS += tests/test_file
check_PROGRAMS += tests/test_map
check_PROGRAMS += tests/test_json
check_PROGRAMS += tests/test_samplers
check_PROGRAMS += tests/test_diffusion_loss
check_PROGRAMS += tests/test_training_draws
check_PROGRAMS += tests/test_optimizers
check_PROGRAMS += tests/test_training
check_PROGRAMS += tests/test_null_caption
check_PROGRAMS += tests/test_training_data
libharness_la_SOURCES += tests/golden_features.c tests/golden_features.h
check_PROGRAMS += tests/test_checkpoint
check_PROGRAMS += tests/test_config
check_PROGRAMS += tests/test_config_scheduler
check_PROGRAMS += tests/test_tensors
check_PROGRAMS += tests/test_parameters
check_PROGRAMS += tests/test_retrieve
check_PROGRAMS += tests/test_rerank
check_PROGRAMS += tests/test_train_graph
check_PROGRAMS += tests/test_train_places
libharness_la_SOURCES += tests/train_graph.c tests/train_graph.h
check_PROGRAMS += tests/test_make_model
check_PROGRAMS += tests/test_safetensors
check_PROGRAMS += tests/test_batch
check_PROGRAMS += tests/test_model
check_PROGRAMS += tests/test_hostile_models
check_PROGRAMS += tests/test_vae
check_PROGRAMS += tests/test_vae_scale
check_PROGRAMS += tests/test_extract
check_PROGRAMS += tests/test_golden
check_PROGRAMS += tests/test_full_geometry
check_PROGRAMS += tests/test_diffusion
check_PROGRAMS += tests/test_allocations
tests_test_allocations_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=smalti_calloc -Wl,--wrap=smalti_aligned_alloc
check_PROGRAMS += tests/test_queue
check_PROGRAMS += tests/test_session
check_PROGRAMS += tests/test_perf_models
check_PROGRAMS += tests/test_counts
check_PROGRAMS += tests/test_insertion
check_PROGRAMS += tests/test_environment
check_PROGRAMS += tests/test_devices
check_PROGRAMS += tests/test_device_tiles
check_PROGRAMS += tests/test_cudnn
check_PROGRAMS += tests/test_device_plans
check_LTLIBRARIES += libownpolicy.la
libownpolicy_la_SOURCES = tests/own_policy.c
libownpolicy_la_LIBADD = $(STARPU_LIBS)
libownpolicy_la_LDFLAGS = -module -avoid-version -rpath /nowhere
check_PROGRAMS += tests/test_policies
check_PROGRAMS += tests/test_pool
check_PROGRAMS += tests/test_features
check_PROGRAMS += tests/test_features_reader
check_PROGRAMS += tests/test_codelets
check_PROGRAMS += tests/test_codelets_diffusion
check_PROGRAMS += tests/test_codelets_t5
check_PROGRAMS += tests/test_codelets_vae
check_PROGRAMS += tests/test_t5
check_PROGRAMS += tests/test_places
check_PROGRAMS += tests/test_slowdown
check_PROGRAMS += tests/test_plans
check_PROGRAMS += tests/test_synthetic
check_PROGRAMS += tests/test_memory_limit
check_PROGRAMS += tests/test_offload
libharness_la_SOURCES += \
	tests/root.c tests/root.h \
	tests/rows.c tests/rows.h \
	tests/store_fixture.c tests/store_fixture.h
check_PROGRAMS += tests/test_store_claims
check_PROGRAMS += tests/test_store_lock
check_PROGRAMS += tests/test_store_failures
check_PROGRAMS += tests/test_store_directory
check_PROGRAMS += tests/test_store_shards
check_PROGRAMS += tests/test_store_ranges
check_PROGRAMS += tests/test_verify
check_PROGRAMS += tests/test_run_log
check_PROGRAMS += tests/test_numbers
check_PROGRAMS += tests/test_report
check_PROGRAMS += tests/test_export
tests_test_export_LDADD = libfolder.la libharness.la libcore.la $(CUNIT_LIBS)
check_PROGRAMS += tests/test_archives
tests_test_archives_LDADD = libharness.la libcore.la $(CUNIT_LIBS) -lz
check_PROGRAMS += tests/test_vae_plans
check_PROGRAMS += tests/test_bench
check_PROGRAMS += tests/test_schedule
check_PROGRAMS += tests/test_crossings
check_PROGRAMS += tests/test_topology
include tests/cuda/local.mk

# A test of the command is tests/SUBJECT.sh, run with the programs' paths in SMALTI and SMALTI_BENCH: one line here adds it.
TEST_EXTENSIONS = .sh
dist_check_SCRIPTS =
dist_check_SCRIPTS += tests/oclgrind.sh
dist_check_SCRIPTS += tests/lost.sh
dist_check_SCRIPTS += tests/train_devices.sh
dist_check_SCRIPTS += tests/faults.sh
dist_check_SCRIPTS += tests/devices.sh
dist_check_SCRIPTS += tests/isa.sh
# Those above take minutes: they are begun first, so that none of them runs alone at the end.
dist_check_SCRIPTS += tests/topology.sh
dist_check_SCRIPTS += tests/account.sh
dist_check_SCRIPTS += tests/bench.sh
dist_check_SCRIPTS += tests/cuda.sh
dist_check_SCRIPTS += tests/decode.sh
dist_check_SCRIPTS += tests/decode_memory.sh
dist_check_SCRIPTS += tests/encode.sh
dist_check_SCRIPTS += tests/extract_bad.sh
dist_check_SCRIPTS += tests/features_h5py.sh
dist_check_SCRIPTS += tests/parquet_to_jsonl.sh
dist_check_SCRIPTS += tests/environments.sh
dist_check_SCRIPTS += tests/export.sh
dist_check_SCRIPTS += tests/export_disk.sh
dist_check_SCRIPTS += tests/extract.sh
dist_check_SCRIPTS += tests/extract_golden.sh
dist_check_SCRIPTS += tests/extract_kill.sh
dist_check_SCRIPTS += tests/generate_basic.sh
dist_check_SCRIPTS += tests/generate_disk.sh
dist_check_SCRIPTS += tests/generate_errors.sh
dist_check_SCRIPTS += tests/generate_ids.sh
dist_check_SCRIPTS += tests/generate_progress.sh
dist_check_SCRIPTS += tests/generate_resume.sh
dist_check_SCRIPTS += tests/make_model.sh
dist_check_SCRIPTS += tests/models.sh
dist_check_SCRIPTS += tests/mpi.sh
dist_check_SCRIPTS += tests/policies.sh
dist_check_SCRIPTS += tests/python.sh
dist_check_SCRIPTS += tests/random_lines.sh
dist_check_SCRIPTS += tests/readme.sh
dist_check_SCRIPTS += tests/report.sh
dist_check_SCRIPTS += tests/serve.sh
dist_check_SCRIPTS += tests/reproducible.sh
dist_check_SCRIPTS += tests/schedule.sh
dist_check_SCRIPTS += tests/signals.sh
dist_check_SCRIPTS += tests/spack.sh
dist_check_SCRIPTS += tests/shrink.sh
dist_check_SCRIPTS += tests/simulate.sh
dist_check_SCRIPTS += tests/slaves.sh
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

# What scripts run besides the command: no tests themselves.
EXTRA_PROGRAMS += tests/store_worker
EXTRA_PROGRAMS += tests/make_bad_dataset
CLEANFILES += tests/make_bad_dataset
tests/extract_bad.log: tests/make_bad_dataset$(EXEEXT)
EXTRA_LTLIBRARIES = libfault.la
libfault_la_SOURCES = tests/fault.c tests/fault_streams.c tests/fault.h
libfault_la_LDFLAGS = -module -avoid-version -rpath /nowhere
CLEANFILES += $(EXTRA_LTLIBRARIES)
tests/mpi.log tests/shrink.log: libfault.la
tests/extract.log tests/extract_kill.log tests/faults.log tests/slurm.log tests/slurm_array.log tests/store_kill.log tests/store_stop.log tests/verify.log: tests/store_worker$(EXEEXT) libfault.la

if OPENCL
EXTRA_LTLIBRARIES += liblose_opencl.la
liblose_opencl_la_SOURCES = tests/lose_opencl.c
liblose_opencl_la_LDFLAGS = -module -avoid-version -rpath /nowhere
tests/lost.log: liblose_opencl.la
endif

EXTRA_PROGRAMS += tests/slave_failure
CLEANFILES += tests/slave_failure
tests/slaves.log: tests/slave_failure$(EXEEXT)

EXTRA_PROGRAMS += tests/shown
CLEANFILES += tests/shown
tests/readme.log: tests/shown$(EXEEXT)

# What scripts run of the programs above: `make check check_PROGRAMS= TESTS=...` makes only what its tests need.
tests/cuda.log: tests/test_device_tiles$(EXEEXT) tests/test_devices$(EXEEXT) tests/test_fusion$(EXEEXT) tests/test_generate$(EXEEXT) \
	tests/test_device_plans$(EXEEXT) tests/test_golden$(EXEEXT) tests/test_retrieve$(EXEEXT) tests/test_slowdown$(EXEEXT) tests/test_transfers$(EXEEXT)
tests/devices.log: tests/test_generate$(EXEEXT) tests/test_golden$(EXEEXT)
tests/isa.log: tests/test_generate$(EXEEXT) tests/test_golden$(EXEEXT) tests/test_matmul_raw$(EXEEXT) tests/test_synthetic$(EXEEXT)
tests/oclgrind.log: tests/test_devices$(EXEEXT)

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
tests/export.log tests/export_disk.log tests/faults.log tests/report.log: tests/make_directory$(EXEEXT)

TESTS += $(dist_check_SCRIPTS) $(check_PROGRAMS)

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
	: $${POCL_CACHE_DIR:='$(abs_top_builddir)/tests/.pocl'}; export POCL_CACHE_DIR; \
	LSAN_OPTIONS='suppressions=$(abs_top_srcdir)/tests/lsan.supp:print_suppressions=0:intercept_tls_get_addr=0'; export LSAN_OPTIONS;

clean-local:
	rm -rf tests/.starpu tests/.pocl

# A fuzzer is tests/fuzz/fuzz_SUBJECT.c, its first inputs tests/fuzz/corpus/SUBJECT/*: one line here adds it.
if FUZZERS
LDADD = libcore.la $(LIB_FUZZING_ENGINE)
noinst_PROGRAMS += tests/fuzz/fuzz_caption
noinst_PROGRAMS += tests/fuzz/fuzz_dataset
noinst_PROGRAMS += tests/fuzz/fuzz_image
noinst_PROGRAMS += tests/fuzz/fuzz_npy
noinst_PROGRAMS += tests/fuzz/fuzz_parse
noinst_PROGRAMS += tests/fuzz/fuzz_png
noinst_PROGRAMS += tests/fuzz/fuzz_prompts
noinst_PROGRAMS += tests/fuzz/fuzz_config
noinst_PROGRAMS += tests/fuzz/fuzz_run
noinst_PROGRAMS += tests/fuzz/fuzz_safetensors
noinst_PROGRAMS += tests/fuzz/fuzz_serve
tests_fuzz_fuzz_serve_LDADD = libcli.la $(LDADD)
noinst_PROGRAMS += tests/fuzz/fuzz_shard
noinst_PROGRAMS += tests/fuzz/fuzz_spiece
noinst_PROGRAMS += tests/fuzz/fuzz_tokenizer
endif

EXTRA_DIST += tests/command.sh tests/device_images.sh tests/ranks.sh tests/store.sh tests/features_h5py.py tests/features_python.py tests/python_package.py tests/browser.py tests/parquet_to_jsonl.py tests/lsan.supp tests/data tests/fuzz/corpus tests/installed.sh

installcheck-local:
	PKG_CONFIG_PATH="$(pkgconfigdir)" CC='$(CC)' CXX='$(CXX)' \
		$(top_srcdir)/tests/installed.sh $(bindir) $(top_srcdir)/docs/example.c
