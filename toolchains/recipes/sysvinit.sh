#!/bin/sh
# Builds a static riscv64 init of sysvinit, which boards with that init are emulated by, with the musl that set-up built.
#
#   SOURCE=sysvinit.tar.gz OUT=dir SYSROOT=musl-riscv64-linux-musl-HASH sysvinit.sh     (in an empty working directory)
set -eu

tar -xf "$SOURCE" --strip-components=1

lib=$SYSROOT/usr/lib
set -- --target=riscv64-linux-musl -march=rv64gc -mabi=lp64d --sysroot="$SYSROOT" -Os -fno-pie -w -D_GNU_SOURCE \
  -DVERSION='"coir"' -include time.h -include sys/sysmacros.h
for part in init utmp runlevellog; do
  clang-19 "$@" -c "src/$part.c" -o "$part.o"
done
clang-19 "$@" --ld-path=/usr/bin/ld.lld-19 -static -nostdlib "$lib/crt1.o" "$lib/crti.o" ./*.o \
  -Wl,--start-group -lc -lgcc -Wl,--end-group "$lib/crtn.o" -o init
llvm-strip-19 init -o "$OUT/init"
