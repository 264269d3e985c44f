#!/bin/sh
# usage: headers_once.sh HEADER COMPILER ARGUMENT ...
#
# Compiles a file of a program that kbuild makes, the kernel or busybox. Reading the same headers for each file would
# be half of the work: the first file to come has HEADER precompiled with its own flags, into HEADER.d, and the files after it
# begin with that. A file that sets a macro before it includes any header is compiled without; so is a file that the compiler
# refuses with it, for its flags differ, or the headers have a name that it defines.
set -eu
header=$1 all=$1.d/all
shift
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
    if [ -e "$all" ] && [ -z "$(sed -n '
        /^#[ \t]*include/q
        /^#[ \t]*define[ \t]*\(pr_fmt\|dev_fmt\|KMSG_COMPONENT\)\>/d
        /^#[ \t]*define/{p;q;}' "$file")" ] &&
      "$@" -include-pch "$all" 2>"$header.d/refused.$$"; then
      rm -f "$header.d/refused.$$"
      exit
    fi
    ;;
esac
exec "$@"
