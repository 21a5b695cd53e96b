# Built by `make bench`; never run by the tests, for a busy machine would fail them.
EXTRA_PROGRAMS = bench/batch
bench_batch_LDADD = libbench.la libcore.la
CLEANFILES += $(EXTRA_PROGRAMS)
EXTRA_DIST += bench/peers bench/features_epoch.py bench/vae_growth.py

.PHONY: bench
bench: bench/batch$(EXEEXT)
