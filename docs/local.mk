dist_doc_DATA = \
	README.md \
	LICENSE \
	docs/adapters.md \
	docs/architecture.md \
	docs/datasets.md \
	docs/decisions.md \
	docs/devices.md \
	docs/extending.md \
	docs/extract.md \
	docs/extract-memory.svg \
	docs/features.md \
	docs/glossary.md \
	docs/image-to-image.md \
	docs/index.md \
	docs/install.md \
	docs/nodes.md \
	docs/performance.md \
	docs/policies.md \
	docs/python.md \
	docs/reference.md \
	docs/retrieve.md \
	docs/serve.md \
	docs/simulate.md \
	docs/share.md \
	docs/slurm.md \
	docs/step-cache.md \
	docs/step-cache.png \
	docs/strategies.md \
	docs/strategies.png \
	docs/tour.md \
	docs/training.md \
	docs/tutorial-features.md \
	docs/tutorial-images.md \
	docs/tutorial-policies.md \
	docs/vae.md \
	docs/vae-growth.svg \
	docs/weights.md \
	docs/image.png \
	docs/image.txt \
	docs/example.c
gpudir = $(docdir)/gpu
dist_gpu_DATA = docs/gpu/h200.md
studiesdir = $(docdir)/studies
dist_studies_DATA = \
	docs/studies/balance.md \
	docs/studies/decoding.md \
	docs/studies/exact.md \
	docs/studies/iteration.md \
	docs/studies/links.md \
	docs/studies/memory.csv \
	docs/studies/policies.csv \
	docs/studies/policies.md \
	docs/studies/predicted.csv \
	docs/studies/predicted.md \
	docs/studies/processes.md \
	docs/studies/published.csv \
	docs/studies/published.md \
	docs/studies/regret.md \
	docs/studies/scale.md \
	docs/studies/scale.svg \
	docs/studies/tilings.md \
	docs/studies/training.csv \
	docs/studies/training.md \
	docs/studies/twin.csv \
	docs/studies/twin.md \
	docs/studies/weights.md \
	docs/studies/winners.md
EXTRA_DIST += CONTRIBUTING.md

# What the pages speak of besides the command: jobs for SLURM, the packages for Python.
slurmdir = $(pkgdatadir)/slurm
dist_slurm_SCRIPTS = scripts/slurm/extract.sbatch scripts/slurm/generate.sbatch scripts/slurm/generate-share.sbatch \
	scripts/slurm/train.sbatch
readerdir = $(pkgdatadir)/python/smalti_features
dist_reader_DATA = \
	python/smalti_features/__init__.py \
	python/smalti_features/features.py \
	python/smalti_features/order.py \
	python/smalti_features/shard.py \
	python/smalti_features/training.py \
	python/smalti_features/xxh3.py
packagedir = $(pkgdatadir)/python/smalti
dist_package_DATA = \
	python/smalti/__init__.py \
	python/smalti/api.py \
	python/smalti/dataset.py \
	python/smalti/declarations.h \
	python/smalti/library.py \
	python/smalti/pipeline.py \
	python/smalti/py.typed \
	python/smalti/session.py \
	python/smalti/vae.py \
	python/smalti/version.py
converterdir = $(packagedir)/convert
dist_converter_DATA = \
	python/smalti/convert/__init__.py \
	python/smalti/convert/__main__.py \
	python/smalti/convert/output.py \
	python/smalti/convert/pickles.py \
	python/smalti/convert/pixart.py \
	python/smalti/convert/torch_file.py

# What shells complete the command's words by.
bashcompletiondir = $(datadir)/bash-completion/completions
nodist_bashcompletion_DATA = docs/completion/smalti
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_zshcompletion_DATA = docs/completion/_smalti
fishcompletiondir = $(datadir)/fish/vendor_completions.d
nodist_fishcompletion_DATA = docs/completion/smalti.fish
completions = docs/completion/smalti docs/completion/_smalti docs/completion/smalti.fish
CLEANFILES += $(completions)
docs/completion/smalti: shell = bash
docs/completion/_smalti: shell = zsh
docs/completion/smalti.fish: shell = fish
$(completions): smalti$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ./smalti completion $(shell) >$@.part && mv $@.part $@

# The man pages are the programs' own words: one line for each subcommand, here and in bench/local.mk.
command_pages = \
	docs/smalti.1 \
	docs/smalti-generate.1 \
	docs/smalti-decode.1 \
	docs/smalti-encode.1 \
	docs/smalti-export.1 \
	docs/smalti-extract.1 \
	docs/smalti-quantize.1 \
	docs/smalti-step-cache.1 \
	docs/smalti-report.1 \
	docs/smalti-retrieve.1 \
	docs/smalti-retrieve-index.1 \
	docs/smalti-retrieve-query.1 \
	docs/smalti-retrieve-train.1 \
	docs/smalti-serve.1 \
	docs/smalti-simulate.1 \
	docs/smalti-train.1 \
	docs/smalti-verify.1 \
	docs/smalti-topology.1
nodist_man_MANS = $(command_pages) $(bench_pages)
CLEANFILES += $(nodist_man_MANS)

$(command_pages): smalti$(EXEEXT)
$(bench_pages): smalti-bench$(EXEEXT)
$(nodist_man_MANS):
	$(AM_V_GEN)$(MKDIR_P) docs && program=$< && word=$(@F) && word=$${word%.1} && \
	word=$${word#$${program%$(EXEEXT)}} && word=$${word#-} && \
	./$$program $$(echo "$$word" | sed 's/^retrieve-/retrieve /') --man >$@.part && mv $@.part $@
