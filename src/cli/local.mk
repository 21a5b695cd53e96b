# The command: one file per subcommand over the option tables, which smalti-bench and tests link too.
noinst_LTLIBRARIES += libcli.la
libcli_la_SOURCES = \
	src/cli/command.c src/cli/command.h \
	src/cli/common_rows.h \
	src/cli/completion.c src/cli/completion.h \
	src/cli/decode.c \
	src/cli/encode.c \
	src/cli/export.c \
	src/cli/extract.c src/cli/extract.h \
	src/cli/extract_options.c \
	src/cli/generate.c \
	src/cli/generate_batch.c src/cli/generate_plan.c src/cli/generate.h \
	src/cli/generate_latents.c \
	src/cli/generate_pictures.c \
	src/cli/generate_options.c \
	src/cli/generate_share.c src/cli/generate_share_identity.c src/cli/generate_share.h \
	src/cli/generate_source.c \
	src/cli/help.c src/cli/help.h \
	src/cli/device_lines.c src/cli/device_lines.h \
	src/cli/image_report.c src/cli/image_report.h \
	src/cli/lora.c src/cli/lora.h \
	src/cli/man.c \
	src/cli/numbers.c src/cli/numbers.h \
	src/cli/options.c src/cli/options.h \
	src/cli/output.c src/cli/output.h \
	src/cli/predict.c src/cli/predict.h \
	src/cli/progress.c src/cli/progress.h \
	src/cli/ranks.c src/cli/ranks.h \
	src/cli/quantize.c \
	src/cli/report.c \
	src/cli/retrieve.c src/cli/retrieve.h \
	src/cli/retrieve_index.c src/cli/retrieve_query.c src/cli/retrieve_train.c \
	src/cli/retrieve_queries.c src/cli/retrieve_queries.h \
	src/cli/serve.c \
	src/cli/signals.c src/cli/signals.h \
	src/cli/simulate.c src/cli/simulate.h \
	src/cli/simulate_options.c \
	src/cli/simulate_print.c src/cli/simulate_print.h \
	src/cli/simulator.c src/cli/simulator.h \
	src/cli/step_cache.c src/cli/step_cache_check.c src/cli/step_cache.h \
	src/cli/topology.c src/cli/topology.h \
	src/cli/topology_json.c \
	src/cli/topology_text.c \
	src/cli/train.c src/cli/train.h \
	src/cli/train_options.c \
	src/cli/vae_command.c src/cli/vae_command.h \
	src/cli/verify.c

bin_PROGRAMS += smalti
smalti_SOURCES = src/cli/main.c
nodist_EXTRA_smalti_SOURCES = force-c++-linking-smalti.cc
smalti_LDADD = libcli.la libserve.la libreport.la libcore.la
