#!/bin/sh
# Builds the C library of armv7-linux-musleabihf, kernel headers and compiler builtins beside it, as musl.sh does for the
# first targets. A target that came later has a recipe of its own, so that the others' libraries keep their keys.
#
#   SOURCE=musl.tar.gz OUT=dir TARGET=armv7-linux-musleabihf musl-armv7-linux-musleabihf.sh    (in an empty directory)
set -eu

gnu=arm-linux-gnueabihf flags="-mcpu=cortex-a7 -mfpu=neon-vfpv4 -mfloat-abi=hard -mthumb"

tar -xf "$SOURCE" --strip-components=1
CC="clang-19 --target=$TARGET $flags -ffile-prefix-map=$PWD=musl" AR=llvm-ar-19 RANLIB=llvm-ranlib-19 \
  CFLAGS="-O2 -g1 -fno-pie" LIBCC=" " \
  ./configure --target="$TARGET" --prefix=/usr --disable-shared
make -j"$(nproc)"
make DESTDIR="$OUT" install

for folder in linux asm-generic asm; do
  cp -RL "/usr/$gnu/include/$folder" "$OUT/usr/include/"
done
set -- /usr/lib/gcc-cross/"$gnu"/*/libgcc.a
for newest; do :; done
cp -L "$newest" "$OUT/usr/lib/libgcc.a"
