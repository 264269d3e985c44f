# Sourced by the scripts after say.sh: the Debian packages that the work needs, listed in packages.txt by group.

# package_groups prints the names of all groups, one a line.
package_groups() {
  sed -n 's/^\([a-z][a-z0-9-]*\)  *[a-z].*/\1/p' "$root/scripts/packages.txt" | sort -u
}

# needs_of FILE ... prints what those test files want, in one line: "test", and what the files name in a line of their head,
# "# needs: NEED ...". scripts/setup --for "$(needs_of FILE ...)" sees to all of it at once, with every target; beside
# "$(tree_needs TREE ...)", with the targets of those trees only.
needs_of() {
  {
    echo test
    [ $# -eq 0 ] || sed -n 's/^# needs: *//p' "$@" | tr -s ' ' '\n'
  } | sort -u | paste -sd ' ' -
}

# tree_needs TREE ... prints what scripts/setup --for takes for building those trees and running their unit tests.
tree_needs() {
  {
    echo unit
    for each_tree; do echo "build:$(tree_target "$each_tree")"; done
  } | sort -u | paste -sd ' ' -
}

# missing_packages GROUP ... prints what has to be installed for those groups, one package a line.
missing_packages() {
  # The names of the packages that are there, between spaces.
  present=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | tr '\n' ' ')"
  for group; do
    sed -n "s/^$group  *//p" "$root/scripts/packages.txt"
  done | sort -u | while IFS='|' read -r first second; do
    case $present in
      *" $first "* | *" ${second:-$first} "*) continue ;;
    esac
    if [ -n "$second" ] && ! apt-cache show "$first" >/dev/null 2>&1; then
      first=$second
    fi
    echo "$first"
  done
}

# need_packages GROUP ... installs the missing packages; where it may not, it says how. One process installs at a time.
need_packages() {
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null || die "this is not Debian; install what corresponds to: $missing"
  [ "$(id -u)" -eq 0 ] || die "packages are missing; run: sudo apt-get install --no-install-recommends $missing"
  mkdir -p /run/lock
  (
    flock 7
    install_packages "$@"
  ) 7>>/run/lock/coir-packages
}

# install_packages GROUP ... is the part of need_packages that has the lock. Package lists of the last ten minutes are new
# enough.
install_packages() {
  apt_log=$(mktemp)
  if [ -z "$(find /run/lock/coir-packages -size +0 -mmin -10)" ]; then
    say "      updating the package lists ..."
    quietly "$apt_log" apt-get -q -o DPkg::Lock::Timeout=600 update
    echo updated >/run/lock/coir-packages
  fi
  missing=$(missing_packages "$@" | tr '\n' ' ')
  if [ -n "$missing" ]; then
    say "      installing $missing..."
    # The runlevel keeps servers among them from being started as services of this machine. Files of packages can be had
    # again: waiting for the disk after each of them would double the time.
    # shellcheck disable=SC2086 # one argument for each package
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive quietly "$apt_log" apt-get -q -y -o DPkg::Lock::Timeout=600 \
      --no-install-recommends -o DPkg::Options::=--force-unsafe-io install $missing 7>&-
  fi
  rm -f "$apt_log"
}
