#!/bin/sh
# usage: ./install.sh [--root DIR] [--init busybox|sysvinit|procd|systemd|none]
#        ./install.sh --remove [--root DIR]
#
# Installs coird and coirctl with the init script of this machine's init, which then starts coird at each boot; --remove takes all
# of it away again. A file that was there before, and a configuration that you have changed since, are left alone and named.
#
#   --root DIR   a root file system that lies below DIR (default: /)
#   --init I     which init it has (default: found out); none: the programs only
#   --remove     undo it: by the list in usr/share/coir/installed
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
usage() { sed -n '2,/^[^#]/{/^#/!d; s/^# \{0,1\}//; p;}' "$0"; }

to='' init='' remove=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --root) to=${2:?--root wants a folder}; to=${to%/}; shift ;;
    --init) init=${2:?--init wants a name}; shift ;;
    --remove) remove=yes ;;
    *) die "no such option: $1 (--help tells)" ;;
  esac
  shift
done
[ -d "${to:-/}" ] || die "$to: no such folder"
[ -w "${to:-/}" ] || die "${to:-/}: not to be written; run it as root"
list=$to/usr/share/coir/installed

# sum_of FILE prints its check sum.
sum_of() { cksum <"$1" | tr ' ' -; }

# dialect prints whose /etc/inittab is, busybox or sysvinit, by the rule of scripts/flash: sysvinit wants a default runlevel and an
# id in each line; busybox has no runlevels, and its ids are terminals. It prints nothing for a table that is neither's.
dialect() {
  table=$(sed 's/^[[:space:]]*//; /^#/d; /^$/d' "$to/etc/inittab" 2>/dev/null) || true
  has() { printf '%s\n' "$table" | grep -q "$@"; }
  if has -v '^[^:]*:[^:]*:[a-z]*:'; then
    return 0
  elif has '^[^:]*:[^:]*:initdefault:' && ! has '^:'; then
    echo sysvinit
  elif ! has '^[^:]*:[^:]'; then
    echo busybox
  fi
}

# respawn_line prints what /etc/inittab needs for init to start coird again whenever it ends, unless it is there.
respawn_line() {
  case $init in busybox | sysvinit) ;; *) return 0 ;; esac
  # Without a table busybox's init runs rcS, which starts coird; one that had this line alone would end that.
  [ -f "$to/etc/inittab" ] && ! grep -q '^[^#]*:respawn:/etc/init.d/S90coird run$' "$to/etc/inittab" || return 0
  head=: id=co number=0
  if [ "$init" = sysvinit ]; then
    # sysvinit drops the second of two lines with one id.
    while grep -q "^[[:space:]]*$id:" "$to/etc/inittab"; do
      id=c$number number=$((number + 1))
    done
    head=$id:2345
  fi
  echo "$head:respawn:/etc/init.d/S90coird run"
}

if [ -n "$remove" ]; then
  [ -r "$list" ] || die "coir is not installed${to:+ below $to}: there is no $list"
  # An installation that did not come to its end has written parts of files.
  whole=$(grep -x whole "$list" || true)
  while read -r what was file; do
    case $what in
      file)
        if [ ! -e "$to$file" ]; then
          continue
        elif [ -z "$whole" ] || [ "$(sum_of "$to$file")" = "$was" ]; then
          rm "$to$file"
        else
          echo "install.sh: $file has changed and stays"
        fi
        ;;
      link)
        if [ -L "$to$file" ] && [ "$(readlink "$to$file")" = "$was" ]; then
          rm "$to$file"
        elif [ -e "$to$file" ] || [ -L "$to$file" ]; then
          echo "install.sh: $file has changed and stays"
        fi
        ;;
      line)
        grep -qxF "$file" "$to/etc/inittab" 2>/dev/null || continue
        # With the table in memory no full disk gets between reading and writing.
        table=$(grep -vxF "$file" "$to/etc/inittab"; echo .)
        table=${table%.}
        [ "$was" = - ] || table=${table%?}
        printf '%s' "$table" >"$to/etc/inittab"
        ;;
    esac
  done <"$list"
  # The deepest come first; one that holds something of others stays.
  folders=$(sed -n 's/^folder - //p' "$list" | LC_ALL=C sort -r)
  rm "$list"
  for folder in $folders; do
    rmdir "$to$folder" 2>/dev/null || true
  done
  exit 0
fi

[ ! -e "$list" ] || die "coir is installed already; ./install.sh --remove takes it away first"
if [ -z "$init" ]; then
  if [ -x "$to/sbin/procd" ]; then
    init=procd
  elif [ -d "$to/run/systemd/system" ] || [ -x "$to/lib/systemd/systemd" ] || [ -x "$to/usr/lib/systemd/systemd" ]; then
    init=systemd
  else
    init=$(dialect)
    [ -n "$init" ] ||
      die "the init here is not clearly busybox's, sysvinit, procd or systemd: name it, or say --init none and start coird yourself"
  fi
fi
case $init in
  busybox | sysvinit | procd | systemd) from=$here/init/$init ;;
  none) from='' ;;
  *) die "no such init: $init; there are: busybox sysvinit procd systemd none" ;;
esac
[ -z "$from" ] || [ -d "$from" ] || from=$here/init/busybox

# The folder that the init's defaults serve, without which coird does not start; systemd makes its own.
case $init in
  busybox | sysvinit) site=/mnt/data/www ;;
  procd) site=/srv/coird ;;
  *) site='' ;;
esac

# The files to install: pairs of a file here and its place. Nothing is written before every file is known to be installable.
plan=$(
  printf '%s|%s\n' "$here/usr/sbin/coird" /usr/sbin/coird "$here/usr/bin/coirctl" /usr/bin/coirctl
  if [ -n "$from" ]; then
    (cd "$from" && find . -type f | sort) | while read -r file; do printf '%s|%s\n' "$from/$file" "${file#.}"; done
  fi
)
echo "$plan" | while IFS='|' read -r source file; do
  [ -r "$source" ] || die "$source is absent: unpack the whole archive"
  [ ! -e "$to$file" ] && [ ! -L "$to$file" ] || die "$file is there already: remove it, or its package, first"
done

# missing FOLDER prints it and those above it that are absent, as lines of the list.
missing() {
  [ -d "$to$1/" ] || {
    missing "${1%/*}"
    echo "folder - $1"
  }
}
# The list is there before anything that it names, so that --remove finds all of it however this ends.
line=$(respawn_line) bare=-
# A last line without an end would swallow ours.
[ -z "$line" ] || [ -z "$(tail -c 1 "$to/etc/inittab")" ] || bare=bare
folders=$(
  { printf '%s\n' "${list#"$to"}" "$site/" && echo "$plan" | cut -d'|' -f2; } | while read -r file; do missing "${file%/*}"; done |
    LC_ALL=C sort -u
)
echo "$folders" | sed 's/^folder - //' | while read -r folder; do [ -z "$folder" ] || mkdir "$to$folder"; done
{
  [ -z "$folders" ] || echo "$folders"
  echo "$plan" | while IFS='|' read -r source file; do
    if [ -L "$source" ]; then echo "link $(readlink "$source") $file"; else echo "file $(sum_of "$source") $file"; fi
  done
  [ -z "$line" ] || echo "line $bare $line"
} >"$list"
echo "$plan" | while IFS='|' read -r source file; do
  if [ -L "$source" ]; then
    ln -s "$(readlink "$source")" "$to$file"
    continue
  fi
  cp "$source" "$to$file" || die "$file is written in part: ./install.sh --remove takes it away"
  case $file in
    */sbin/* | */bin/* | */init.d/*) chmod 755 "$to$file" ;;
    *) chmod 644 "$to$file" ;;
  esac
done
if [ -n "$line" ]; then
  [ "$bare" = - ] || echo >>"$to/etc/inittab"
  echo "$line" >>"$to/etc/inittab"
fi
echo whole >>"$list"
echo "install.sh: installed for $init${to:+ below $to}"
case $init in
  busybox | sysvinit) echo "install.sh: it starts at the next boot; at once: kill -HUP 1" ;;
  procd) echo "install.sh: now: /etc/init.d/coird enable && /etc/init.d/coird start" ;;
  systemd) echo "install.sh: now: systemctl daemon-reload && systemctl enable --now coird" ;;
esac
