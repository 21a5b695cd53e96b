# What records the tasks of a session
libcore_la_SOURCES += \
	src/trace/order.c src/trace/order.h \
	src/trace/recent.c src/trace/recent.h \
	src/trace/tile_uses.c src/trace/tile_uses.h \
	src/trace/trace.c src/trace/trace.h
