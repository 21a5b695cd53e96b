# Measuring: what `smalti bench` runs.
libcore_la_SOURCES += \
	src/bench/roofline.c src/bench/roofline.h \
	src/bench/statistics.c src/bench/statistics.h
