dist_doc_DATA = README.md LICENSE docs/architecture.md docs/datasets.md docs/decisions.md docs/extending.md docs/extract.md docs/extract-memory.svg docs/features.md docs/performance.md docs/reference.md docs/slurm.md docs/vae.md docs/vae-growth.svg \
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

# The man pages are the command's own words: one line here for each subcommand.
command_pages = \
	docs/smalti-generate.1 \
	docs/smalti-decode.1 \
	docs/smalti-encode.1 \
	docs/smalti-export.1 \
	docs/smalti-extract.1 \
	docs/smalti-report.1 \
	docs/smalti-verify.1 \
	docs/smalti-topology.1 \
	docs/smalti-bench.1 \
	docs/smalti-bench-generate.1 \
	docs/smalti-bench-kernels.1 \
	docs/smalti-bench-make-model.1 \
	docs/smalti-bench-stages.1
nodist_man_MANS = docs/smalti.1 $(command_pages)
CLEANFILES += $(nodist_man_MANS)

docs/smalti.1: smalti$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) docs && ./smalti$(EXEEXT) --man >$@.part && mv $@.part $@
$(command_pages): smalti$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) docs && page=$(@F) && page=$${page#smalti-} && \
	./smalti$(EXEEXT) $$(echo $${page%.1} | sed 's/^bench-/bench /') --man >$@.part && mv $@.part $@
