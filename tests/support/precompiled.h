// The headers of most unit tests. toolchains/precompiled.cmake tells why.
#pragma once

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/server.h>
#include <coir/net/tcp.h>
#include <coir/process.h>
#include <coir/program.h>
#include <coir/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#if !COIR_NO_ASYNC
#include <coir/all.h>
#include <coir/group.h>
#include <coir/inspect.h>
#include <coir/isolate.h>
#include <coir/nursery.h>
#include <coir/once.h>
#include <coir/pool.h>
#include <coir/race.h>
#include <coir/runtime.h>
#include <coir/rw_lock.h>
#include <coir/select.h>
#include <coir/semaphore.h>
#include <coir/wait_group.h>
#endif
#if COIR_TLS
#include <coir/net/tls.h>
#endif
