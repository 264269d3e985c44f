#!/bin/sh
# Builds the static C library of one target, with kernel headers and compiler builtins beside it: a whole sysroot.
#
#   SOURCE=musl.tar.gz OUT=dir TARGET=riscv64-linux-musl musl.sh     (run in an empty working directory)
#
# No unwind tables go into the library (--enable-debug is not asked for); -g1 leaves .debug_frame for gdb, which
# strip removes. libgcc.a serves as the builtins: only libgcc, never libgcc_eh, so no unwinder can come in.
set -eu

case $TARGET in
  riscv64-linux-musl) cpu=riscv64 flags="-march=rv64gc -mabi=lp64d" ;;
  x86_64-linux-musl) cpu=x86_64 flags="-march=x86-64" ;;
  aarch64-linux-musl) cpu=aarch64 flags="-march=armv8-a -mno-outline-atomics" ;;
  *) echo "musl.sh: unknown target $TARGET" >&2; exit 1 ;;
esac

first() { # the last existing path of those given, so that the newest version of a pattern wins
  found=
  for path; do [ -e "$path" ] && found=$path; done
  [ -n "$found" ] || { echo "musl.sh: none of these exists: $*" >&2; exit 1; }
  echo "$found"
}

tar -xf "$SOURCE" --strip-components=1
CC="clang-19 --target=$TARGET $flags -ffile-prefix-map=$PWD=musl" AR=llvm-ar-19 RANLIB=llvm-ranlib-19 \
  CFLAGS="-O2 -g1 -fno-pie" LIBCC=" " \
  ./configure --target="$TARGET" --prefix=/usr --disable-shared

# The compiler starts in 25 ms and compiles one of these 1,350 files in 10: one process compiles a hundred. Its driver is
# asked how it would compile a file with the flags that nearly all share; the process that it names takes any number and
# leaves each object beside its source. make compiles the rest, and everything if the compiler refuses.
make obj/include/bits/alltypes.h obj/include/bits/syscall.h obj/src/internal/version.h
make -n lib/libc.a | sed -n 's|^\(.*\) -c -o obj/\(.*\)\.o \2\.c$|\2 \1|p' >compiled
shared=$(cut -d' ' -f2- compiled | sort | uniq -c | sort -rn | sed -n '1s/^ *[0-9]* //p')
$shared -c -o x.o -x c /dev/null '-###' 2>&1 |
  sed -n '$s/ "-main-file-name" "null"//; $s/ "-o" "x.o".*/ "$@"/p' >compile_all
if [ -s compile_all ] &&
  grep -F " $shared" compiled | sed 's/ .*/.c/' | xargs -n 100 -P "$(nproc)" sh ./compile_all; then
  find src -name '*.o' -print0 | xargs -0 cp --parents -t obj
fi
make -j"$(nproc)"
make DESTDIR="$OUT" install

gnu=$cpu-linux-gnu
linux=$(dirname "$(first /usr/include/linux /usr/"$gnu"/include/linux)")
asm=$(dirname "$(first /usr/include/"$gnu"/asm /usr/"$gnu"/include/asm)")
cp -RL "$linux/linux" "$linux/asm-generic" "$OUT/usr/include/"
cp -RL "$asm/asm" "$OUT/usr/include/"
cp -L "$(first /usr/lib/gcc/"$gnu"/*/libgcc.a /usr/lib/gcc-cross/"$gnu"/*/libgcc.a)" "$OUT/usr/lib/libgcc.a"
