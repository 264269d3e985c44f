# Sourced by the scripts after say.sh: the user's cache of others' sources and of what was built from them.
#
#   sources/<file>               tarballs as Debian ships them
#   <what>-<hash>/               the result of one recipe; the hash covers its pin and the recipe itself
#
# toolchains/cache.cmake computes the same names, so that CMake finds them without these scripts.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/coir
pins=$root/toolchains/pins.txt

# recipe WHAT PACKAGE prints the file that makes WHAT: its own where there is one, or that of PACKAGE.
recipe() {
  [ -f "$root/toolchains/recipes/$1.sh" ] || shift
  echo "$root/toolchains/recipes/$1.sh"
}

# cached WHAT PACKAGE prints where the result named WHAT of the recipe for PACKAGE lives.
cached() {
  hash=$({
    grep "^$2 " "$pins"
    cat "$(recipe "$1" "$2")"
  } | sha256sum | cut -c1-16)
  echo "$cache/$1-$hash"
}

# make_cached WHAT PACKAGE [NAME=VALUE ...] runs the recipe for PACKAGE unless its result is there. The result appears
# by one rename: an interrupted run leaves nothing that looks finished. With several runs at the same time one builds and the others wait.
make_cached() {
  what=$1 package=$2
  shift 2
  out=$(cached "$what" "$package")
  [ ! -d "$out" ] || return 0
  exec 9>"$cache/lock"
  flock -n 9 || { say "      waiting for another set-up ..."; flock 9; }
  if [ -d "$out" ]; then
    exec 9>&-
    return 0
  fi
  fetch_source "$package"
  work=$(mktemp -d "$cache/work.XXXXXX")
  mkdir "$work/src" "$work/out"
  say "      $what: building ..."
  (cd "$work/src" && quietly "$work/log" env SOURCE="$source_file" OUT="$work/out" "$@" \
    sh "$(recipe "$what" "$package")")
  mv -T "$work/out" "$out"
  rm -rf "$work"
  exec 9>&-
}

# fetch_source PACKAGE leaves the pinned tarball in the cache, its hash verified, and its path in source_file.
fetch_source() {
  # shellcheck disable=SC2046 # the fields of the line are wanted apart
  set -- $(grep "^$1 " "$pins") || die "$1 is not pinned in $pins"
  package=$1 version=$2 suite=$3 want=$4
  mkdir -p "$cache/sources"
  source_file=$(find "$cache/sources" -name "${package}_$version.orig.tar.*" | head -n 1)
  if [ -z "$source_file" ]; then
    say "      $package $version: fetching its source ..."
    mirror=$(debian_mirror)
    mirror=${mirror%/}
    [ -n "$mirror" ] ||
      die "apt on this machine names no Debian archive; set COIR_DEBIAN_MIRROR to the address of one"
    case $package in lib*) pool=${package%"${package#????}"} ;; *) pool=${package%"${package#?}"} ;; esac
    fetched=$(mktemp -d "$cache/sources/fetch.XXXXXX")
    # apt's own way to fetch a file, through the proxy that it is configured for.
    for kind in gz xz bz2; do
      file=${package}_$version.orig.tar.$kind
      if /usr/lib/apt/apt-helper download-file "$mirror/pool/main/$pool/$package/$file" "$fetched/$file" >>"$fetched/log" 2>&1 </dev/null; then
        source_file=$cache/sources/$file
        mv "$fetched/$file" "$source_file"
        break
      fi
    done
    [ -n "$source_file" ] || {
      tail -n 3 "$fetched/log" >&2
      die "$mirror has no $package $version (Debian $suite); look at toolchains/pins.txt (whole log: $fetched/log)"
    }
    rm -rf "$fetched"
  fi
  have=$(sha256sum "$source_file" | cut -d' ' -f1)
  if [ "$have" != "$want" ]; then
    die "$source_file has sha256 $have, pinned is $want: delete the file and run again, or look at toolchains/pins.txt"
  fi
}

# debian_mirror prints the address of the Debian archive that this machine is configured for.
debian_mirror() {
  if [ -n "${COIR_DEBIAN_MIRROR:-}" ]; then
    echo "$COIR_DEBIAN_MIRROR"
    return
  fi
  # shellcheck disable=SC1091
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
  APT_CONFIG='' apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v r="$release" '($1 == r || $1 ~ /^(old)*stable$|^testing$|^sid$/) && $2 == "main" { print $3; exit }'
}
