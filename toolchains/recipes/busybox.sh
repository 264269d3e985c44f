#!/bin/sh
# Builds a static riscv64 busybox, the emulated board's userland as on the board itself, with the musl that set-up built.
#
#   SOURCE=busybox.tar.bz2 OUT=dir SYSROOT=musl-riscv64-linux-musl-HASH busybox.sh     (in an empty working directory)
set -eu

tar -xf "$SOURCE" --strip-components=1

# The compiler's own choice of start files would be gcc's; this driver names those of the sysroot.
# busybox sets a const pointer to its globals once in a while; clang believes the const unless it is defined away.
once=${0%/*}/../headers_once.sh
cat >cc <<END
#!/bin/sh
clang="clang-19 --target=riscv64-linux-musl -march=rv64gc -mabi=lp64d --sysroot=$SYSROOT -fno-pie -w -DBB_GLOBAL_CONST="
case " \$* " in
  *" -c "* | *" -E "* | *" -S "* | *" -r "* | *" -print-"* | *" --version "*) exec "$once" "$PWD/include/libbb.h" 'libbb\.h' \$clang "\$@" ;;
esac
lib=$SYSROOT/usr/lib
exec \$clang --ld-path=/usr/bin/ld.lld-19 -static -nostdlib \$lib/crt1.o \$lib/crti.o "\$@" \
  -Wl,--start-group -lc -lgcc -Wl,--end-group \$lib/crtn.o
END
chmod +x cc

# Newer kernel headers lack what tc wants, the sysroot has no mtd headers, the SHA instructions are x86's.
make HOSTCC=clang-19 defconfig
sed -i -e 's/^# CONFIG_STATIC is not set/CONFIG_STATIC=y/' \
  -e 's/^\(CONFIG_\(TC\|SHA.*_HWACCEL\|NAND.*\|FLASH.*\|UBI.*\)\)=y/# \1 is not set/' .config
yes '' | make HOSTCC=clang-19 oldconfig >/dev/null
make -j"$(nproc)" ARCH=riscv CC="$PWD/cc" HOSTCC=clang-19 LD=ld.lld-19 AR=llvm-ar-19 NM=llvm-nm-19 STRIP=llvm-strip-19 \
  OBJCOPY=llvm-objcopy-19 SKIP_STRIP=y busybox busybox.links
llvm-strip-19 busybox -o "$OUT/busybox"
# The names of its applets, with their folders.
cp busybox.links "$OUT/"
