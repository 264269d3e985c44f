#!/bin/sh
# usage: headers_once.sh HEADER FIRST COMPILER ARGUMENT ...
#
# Compiles a file of a program that kbuild makes, the kernel or busybox. Reading the same headers for each file would be half
# of the work: the first file to come has HEADER precompiled with its own flags, into HEADER.d, and the files after it begin
# with that. A file is compiled without if the first header that it includes does not match FIRST (some files keep out of
# HEADER's way), or if it sets a macro before, or if the compiler refuses, for its flags differ or it defines a name of HEADER's.
set -eu
header=$1 all=$1.d/all first=$2
shift 2
for file; do :; done

# precompile COMPILER ARGUMENT ... : without the names that differ from file to file.
precompile() {
  left=$#
  while [ "$left" -gt 0 ]; do
    case $1 in
      -Wp,-M* | -DKBUILD_* | -D__KBUILD_* | "$file") ;;
      *) set -- "$@" "$1" ;;
    esac
    shift
    left=$((left - 1))
  done
  "$@" -x c-header -o "$all.new" "$header" 2>"$header.d/log" && mv "$all.new" "$all"
}

case " $* " in
  # Programs of this machine, and code of the kernel that is linked apart from the rest.
  *" -o scripts/"* | *" -fPIC "* | *" -fpic "*) ;;
  *" -DKBUILD_MODNAME="*" -c -o "*".c ")
    ! mkdir "$header.d" 2>/dev/null || precompile "$@" || true
    if [ -e "$all" ] && [ -n "$(sed -n "
        /^#[ \t]*include/{/$first/p;q;}
        /^#[ \t]*define[ \t]*\(pr_fmt\|dev_fmt\|KMSG_COMPONENT\)\>/d
        /^#[ \t]*define/q" "$file")" ] &&
      "$@" -include-pch "$all" 2>"$header.d/refused.$$"; then
      rm -f "$header.d/refused.$$"
      exit
    fi
    ;;
esac
exec "$@"
