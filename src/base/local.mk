libcore_la_SOURCES += \
	src/base/base.h src/base/alloc.c \
	src/base/bits.h \
	src/base/base64.c src/base/base64.h \
	src/base/byte_reader.c src/base/byte_reader.h \
	src/base/clock.c src/base/clock.h \
	src/base/dtype.c src/base/dtype.h src/base/dtype_enum.h \
	src/base/fp8.c src/base/fp8.h \
	src/base/work.h \
	src/base/error.c \
	src/base/file.c src/base/map.c src/base/writer.c src/base/writer_clean.c \
	src/base/file.h \
	src/base/int8.c src/base/int8.h \
	src/base/rows8.h \
	src/base/json.c src/base/json_get.c \
	src/base/json_kept.c src/base/json_kept.h src/base/json.h \
	src/base/json_fields.c src/base/json_fields.h \
	src/base/mix.h \
	src/base/parse.c src/base/parse.h \
	src/base/process.c src/base/process.h \
	src/base/rate.c src/base/rate.h \
	src/base/sealed.c src/base/sealed.h \
	src/base/set.c src/base/set.h \
	src/base/shipped.c src/base/shipped.h \
	src/base/offload.c src/base/offload.h \
	src/base/utf8.c src/base/utf8.h \
	src/base/version.c
