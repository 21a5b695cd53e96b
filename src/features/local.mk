# Sources of src/features
libcore_la_SOURCES += \
	src/features/features.c \
	src/features/order.c src/features/order.h \
	src/features/queue.c src/features/queue.h \
	src/features/set.c src/features/set.h \
	src/features/source.c
