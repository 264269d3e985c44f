#!/bin/sh
# usage: ccache.sh ROOT COMPILER ARGUMENT ...
#
# CMake starts the compiler by this script if ccache is installed (toolchains/ccache.cmake). A file that was compiled in one
# clone of this tree is found again in another, and in another build tree that compiles it alike: paths below ROOT count as
# relative ones.
#
# A batch (COIR_UNITY) is a file of CMake's that includes others by absolute paths. A copy is compiled in its place, which
# includes them by their paths below ROOT.
set -eu
root=$1
shift
batch='' left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  # ccache makes other paths below ROOT relative itself. This one is the folder of coir/config.h, in trees that lie
  # elsewhere too.
  case $argument in
    -I"$PWD"/*) argument=-I${argument#"-I$PWD"/} ;;
    "$PWD"/*/Unity/unity_*.cxx)
      batch=${argument#"$PWD"/}
      argument=${batch%.cxx}_below_root.cxx
      sed "s|^#include \"$root/|#include \"|" "$batch" >"$argument"
      ;;
  esac
  set -- "$@" "$argument"
  left=$((left - 1))
done
[ -z "$batch" ] || set -- "$@" -iquote "$root"
export CCACHE_DIR="${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/coir/ccache}" CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-2G}"
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=yes
# ccache takes a file's dependencies from the compiler's own list: preprocessing it first would be a fifth of the work.
export CCACHE_DEPEND=yes
# A header that changes while a file is compiled must not make its object that of the new text: no laxity about times of files.
export CCACHE_SLOPPINESS=time_macros
# The compiler's memory is fresh at each start. In huge pages (where the kernel has them for whoever asks) it faults a quarter as
# often, which takes a tenth less time.
export GLIBC_TUNABLES="${GLIBC_TUNABLES:+$GLIBC_TUNABLES:}glibc.malloc.hugetlb=1"
exec ccache "$@"
