#!/bin/sh
# Takes the library out of mbedTLS's source, compiled by each build tree with its own flags and configuration.
#
#   SOURCE=mbedtls.tar.bz2 OUT=dir mbedtls.sh
#
# One line differs from the source: bignum.h names the CPUs that have 64-bit limbs, and does not know riscv64. With it ECDSA
# and ECDH take a quarter less there than with the 32-bit limbs it would choose.
set -eu
tar -xf "$SOURCE" -C "$OUT" --strip-components=1 --wildcards '*/include/mbedtls' '*/include/psa' '*/library' '*/LICENSE'
rm -rf "$OUT/3rdparty" "$OUT/framework" "$OUT/library/Makefile" "$OUT/library/CMakeLists.txt"
bignum=$OUT/include/mbedtls/bignum.h
sed -i 's/^    defined(__aarch64__))$/    defined(__aarch64__) || (defined(__riscv) \&\& __riscv_xlen == 64))/' "$bignum"
grep -q '__riscv_xlen == 64' "$bignum" || { echo "mbedtls.sh: bignum.h has another list of CPUs" >&2; exit 1; }
