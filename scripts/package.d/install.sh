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

# respawn_line prints what /etc/inittab needs for init to start coird again whenever it ends.
respawn_line() {
  case $init in
    busybox) echo '::respawn:/etc/init.d/S90coird run' ;;
    sysvinit) echo 'co:2345:respawn:/etc/init.d/S90coird run' ;;
  esac
}

if [ -n "$remove" ]; then
  [ -r "$list" ] || die "coir is not installed${to:+ below $to}: there is no $list"
  while read -r what was file; do
    case $what in
      file)
        if [ ! -e "$to$file" ]; then
          continue
        elif [ "$(sum_of "$to$file")" = "$was" ]; then
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
        grep -vxF "$file" "$to/etc/inittab" >"$to/etc/inittab.coir" || true
        cat "$to/etc/inittab.coir" >"$to/etc/inittab"
        rm "$to/etc/inittab.coir"
        ;;
    esac
  done <"$list"
  # The deepest come first; one that holds something of others stays.
  folders=$(sed -n 's/^folder - //p' "$list")
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
  elif grep -q '^[^#:][^:]*:[^:]*:\(respawn\|initdefault\):' "$to/etc/inittab" 2>/dev/null; then
    init=sysvinit
  elif grep -q '^[^#:]*::\(sysinit\|respawn\|askfirst\):' "$to/etc/inittab" 2>/dev/null; then
    init=busybox
  else
    die "what starts programs here is neither busybox's init, sysvinit, procd nor systemd: say --init none, and start coird yourself"
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

# make_folder FOLDER makes it and those above it, and notes what it made, the deepest first.
made=''
make_folder() {
  [ ! -d "$to$1/" ] || return 0
  make_folder "${1%/*}"
  mkdir "$to$1"
  made="folder - $1
$made"
}
make_folder /usr/share/coir
: >"$list"
echo "$plan" >"$list.plan"
while IFS='|' read -r source file; do
  make_folder "${file%/*}"
  if [ -L "$source" ]; then
    ln -s "$(readlink "$source")" "$to$file"
    echo "link $(readlink "$source") $file" >>"$list"
    continue
  fi
  cp "$source" "$to$file"
  case $file in
    */sbin/* | */bin/* | */init.d/*) chmod 755 "$to$file" ;;
    *) chmod 644 "$to$file" ;;
  esac
  echo "file $(sum_of "$to$file") $file" >>"$list"
done <"$list.plan"
rm "$list.plan"
[ -z "$site" ] || make_folder "$site"
line=$(respawn_line)
if [ -n "$line" ] && ! grep -qxF "$line" "$to/etc/inittab"; then
  # A last line without an end would swallow ours.
  [ -z "$(tail -c 1 "$to/etc/inittab")" ] || echo >>"$to/etc/inittab"
  echo "$line" >>"$to/etc/inittab"
  echo "line - $line" >>"$list"
fi
printf '%s' "$made" >>"$list"
echo "install.sh: installed for $init${to:+ below $to}"
case $init in
  busybox | sysvinit) echo "install.sh: it starts at the next boot; at once: kill -HUP 1" ;;
  procd) echo "install.sh: now: /etc/init.d/coird enable && /etc/init.d/coird start" ;;
  systemd) echo "install.sh: now: systemctl daemon-reload && systemctl enable --now coird" ;;
esac
