# Sources of src/tokenizer
libcore_la_SOURCES += \
	src/tokenizer/charsmap.c \
	src/tokenizer/special_tokens.c \
	src/tokenizer/spiece.c src/tokenizer/spiece.h \
	src/tokenizer/tokenizer.c src/tokenizer/tokenizer.h \
	src/tokenizer/tokenizer_json.c src/tokenizer/tokenizer_json.h \
	src/tokenizer/tokenizer_rules.c

# The one C++ file is a library of its own: were it part of libcore, libtool would take libm and the
# C++ run-time library for the compiler's business and drop them, and the C compiler links the programs.
noinst_LTLIBRARIES += libshim.la
libshim_la_SOURCES = src/tokenizer/sentencepiece_shim.cc src/tokenizer/sentencepiece_shim.h
# The headers of libsentencepiece need std::string_view; a C compiler does not link what UBSan's vptr wants.
libshim_la_CXXFLAGS = $(AM_CXXFLAGS) -std=gnu++17 -fno-sanitize=vptr
libcore_la_LIBADD += libshim.la -lstdc++
