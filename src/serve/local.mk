# The server of images over HTTP, without the command's options.
noinst_LTLIBRARIES += libserve.la
libserve_la_LIBADD = $(MICROHTTPD_LIBS)
libserve_la_SOURCES = \
	src/serve/answer.c \
	src/serve/body.c \
	src/serve/edit.c \
	src/serve/form.c src/serve/form.h \
	src/serve/head.c \
	src/serve/http.c \
	src/serve/job.c \
	src/serve/listen.c src/serve/lora.c \
	src/serve/metrics.c \
	src/serve/peers.c \
	src/serve/queue.c src/serve/queue.h \
	src/serve/request.c \
	src/serve/serve.h \
	src/serve/server.c

# The page of the server, which the assembler reads.
EXTRA_DIST += src/serve/page.html
src/serve/http.lo: src/serve/page.html
src/serve/http.lo: AM_CFLAGS += -Wa,-I$(srcdir)
