libcore_la_SOURCES += \
	src/rt/grid.c src/rt/grid.h \
	src/rt/scope.c src/rt/scope.h \
	src/rt/session.c src/rt/session.h \
	src/rt/task.c src/rt/task.h \
	src/rt/tile.c src/rt/tile.h \
	src/rt/trace.c src/rt/trace.h
