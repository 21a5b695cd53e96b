dist_doc_DATA = README.md LICENSE docs/architecture.md docs/datasets.md docs/decisions.md docs/devices.md docs/extending.md docs/extract.md docs/extract-memory.svg docs/features.md docs/nodes.md docs/performance.md docs/reference.md docs/simulate.md docs/slurm.md docs/strategies.md docs/strategies.png docs/vae.md docs/vae-growth.svg \
	docs/image.png docs/image.txt docs/example.c
EXTRA_DIST += CONTRIBUTING.md

# What the pages speak of besides the command: a job array for SLURM, the reader for Python.
slurmdir = $(pkgdatadir)/slurm
dist_slurm_DATA = scripts/slurm/extract.sbatch
readerdir = $(pkgdatadir)/python/smalti_features
dist_reader_DATA = \
	python/smalti_features/__init__.py \
	python/smalti_features/features.py \
	python/smalti_features/order.py \
	python/smalti_features/shard.py \
	python/smalti_features/training.py \
	python/smalti_features/xxh3.py

# The man pages are the programs' own words: one line for each subcommand, here and in bench/local.mk.
command_pages = \
	docs/smalti.1 \
	docs/smalti-generate.1 \
	docs/smalti-decode.1 \
	docs/smalti-encode.1 \
	docs/smalti-export.1 \
	docs/smalti-extract.1 \
	docs/smalti-report.1 \
	docs/smalti-simulate.1 \
	docs/smalti-verify.1 \
	docs/smalti-topology.1
nodist_man_MANS = $(command_pages) $(bench_pages)
CLEANFILES += $(nodist_man_MANS)

$(command_pages): smalti$(EXEEXT)
$(bench_pages): smalti-bench$(EXEEXT)
$(nodist_man_MANS):
	$(AM_V_GEN)$(MKDIR_P) docs && program=$< && word=$(@F) && word=$${word%.1} && \
	word=$${word#$${program%$(EXEEXT)}} && ./$$program $${word#-} --man >$@.part && mv $@.part $@
