#!/bin/sh
# The build without fibers has none: what its programs and libraries define and call, and what including a fiber's header
# says. (That it serves, the coird_* tests and vm_no_async see to.)
#
# everything: builds trees of its own
# builds: trees of its own
# limit: 590
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/scripts/say.sh"
. "$root/scripts/cache.sh"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/coir-no-async.XXXXXX")
found=$scratch/found
trap 'rm -rf "$scratch"' EXIT
status=0

# none TEXT: the promise holds if nothing was written to $found.
none() {
  if [ -s "$found" ]; then
    echo "not ok - $1"
    head -n 30 "$found" | sed 's/^/  /'
    status=1
  else
    echo "ok - $1"
  fi
}

# The classes and functions that fibers are made of, by name, and the calls that systems without fibers lack.
machinery='Fiber|fiber|Scheduler|Reactor|TimerWheel|StackPool|RunQueue|Worker|Waiter|RestingWait|Poller|coir_switch|futex'
foreign='(mmap|mmap64|munmap|mremap|mprotect|madvise|pthread_[a-z_]*|thrd_[a-z]*|clone|epoll_[a-z0-9_]*)'

for target in x86_64-linux-musl riscv64-linux-musl; do
  "$root/scripts/build" --target "$target" --no-async --no-tests >"$found" 2>&1 || {
    tail -n 20 "$found"
    echo "not ok - $target: builds without fibers"
    status=1
    continue
  }
  tree=$root/build/$target-no-async
  ours=$(find "$tree/port" "$tree/core" "$tree/net" "$tree/apps" -name '*.o')
  [ "$(echo "$ours" | wc -l)" -ge 30 ] || die "$tree holds too few objects to tell anything"
  llvm-nm-19 "$tree/apps/coird/coird" | grep -E " [A-Za-z] .*($machinery)" >"$found" || true
  none "$target: no fiber, scheduler, reactor, timer wheel or switch is in the daemon"
  # shellcheck disable=SC2086 # one word for each object
  llvm-nm-19 -A $ours | grep -E " [A-TV-Za-z] .*($machinery)" >"$found" || true
  none "$target: nor in any object of the libraries"
  # shellcheck disable=SC2086
  llvm-nm-19 -A -u $ours | grep -E " U _*$foreign\$" >"$found" || true
  none "$target: no object of ours calls mmap, epoll or pthread"
  llvm-readelf-19 -SW "$tree/apps/coird/coird" | grep -E ' \.t(bss|data) ' >"$found" || true
  none "$target: the daemon has no thread-local storage"
done

cmake -DCOIR_CONFIG_DIR="$scratch" -DCOIR_NO_ASYNC=ON -DCOIR_SINGLE_WORKER=ON -P "$root/toolchains/config.cmake"
libcxx=$(dirname "$(dirname "$(realpath "$(command -v clang-19)")")")/include/c++/v1
sysroot=$(cached "musl-x86_64-linux-musl" musl)
for header in coir/fiber.h coir/task.h coir/nursery.h coir/all.h coir/race.h coir/cancellation.h coir/group.h coir/pool.h \
  coir/runtime.h coir/resting_wait.h coir/detail/wait_list.h coir/mutex.h coir/condition.h coir/event.h \
  coir/semaphore.h coir/wait_group.h coir/once.h coir/rw_lock.h coir/channel.h coir/broadcast.h coir/select.h \
  coir/inspect.h coir/isolate.h coir/trace.h coir/detail/fiber_group.h coir/detail/fiber_handle.h coir/detail/nursery_base.h \
  coir/port/barrier.h coir/port/context.h coir/port/poller.h coir/port/futex.h; do
  echo "#include <$header>" | clang++-19 -fsyntax-only --target=x86_64-linux-musl --sysroot="$sysroot" -std=c++23 \
    -fno-exceptions -fno-rtti -nostdinc++ -isystem "$libcxx" -D_LIBCPP_HAS_MUSL_LIBC \
    -I"$scratch" -I"$root/port/include" -I"$root/core/include" -x c++ - >"$found" 2>&1 &&
    echo "it compiled" >"$found"
  if grep -qE 'needs_fibers\.h:.*error: .*this build has none \(COIR_NO_ASYNC\)' "$found" &&
    grep -qE "^In file included from .*$header:" "$found" && [ "$(grep -c 'error:' "$found")" -eq 1 ]; then
    : >"$found"
  fi
  none "including $header there is one error that says what to do, and names the header"
done
exit "$status"
