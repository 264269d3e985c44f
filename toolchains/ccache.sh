#!/bin/sh
# usage: ccache.sh ROOT COMPILER ARGUMENT ...
#
# What CMake starts the compiler by where ccache is installed (toolchains/ccache.cmake). A file that was compiled in one
# clone of this tree is found again in another, and in another build tree that compiles it alike: paths below ROOT count as
# relative ones.
#
# A precompiled header holds absolute paths, so it is made anew in each clone. What is compiled with it is found all the
# same: ccache takes the file X.pch.sum for the contents of X.pch.
set -eu
root=$1
shift
previous='' output='' dependencies='' left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  case $previous in
    -o) output=$argument ;;
    -MF) dependencies=$argument ;;
  esac
  previous=$argument
  # ccache makes other paths below ROOT relative itself, but not the first, which CMake hands to clang's inner half. The
  # second is the folder of coir/config.h, in trees that lie elsewhere too.
  case $argument in
    "$PWD"/*/cmake_pch.hxx) argument=${argument#"$PWD"/} ;;
    -I"$PWD"/*) argument=-I${argument#"-I$PWD"/} ;;
  esac
  set -- "$@" "$argument"
  left=$((left - 1))
done
case $output in
  *.pch)
    "$@"
    {
      echo "$*"
      # The rule's name ends with a colon, each line but the last with a backslash; no path here has a space.
      sed 's/^[^ ]*: *//; s/\\$//' "$dependencies" | xargs cat --
    } | sed "s|$PWD/||g; s|$root|.|g" | sha256sum >"$output.sum"
    ;;
  *)
    export CCACHE_DIR="${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/coir/ccache}" CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-2G}"
    export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=yes CCACHE_PCH_EXTSUM=yes
    # What a file depends on is taken from the compiler's own list: preprocessing it first would be a fifth of the work.
    export CCACHE_DEPEND=yes
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    exec ccache "$@"
    ;;
esac
