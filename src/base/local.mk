libcore_la_SOURCES += \
	src/base/alloc.c src/base/alloc.h \
	src/base/dtype.c src/base/dtype.h \
	src/base/error.c src/base/error.h \
	src/base/mt19937.c src/base/mt19937.h \
	src/base/parse.c src/base/parse.h
