# Sourced by the scripts after say.sh: the Debian packages that the work needs, listed in packages.txt by group.

# package_groups prints the names of all groups, one a line.
package_groups() {
  sed -n 's/^\([a-z][a-z]*\)  *[a-z].*/\1/p' "$root/scripts/packages.txt" | sort -u
}

# needs_of FILE ... prints the groups that those test files want, in one line: "build", "test", and what the files name in a
# line of their head, "# needs: GROUP ...". scripts/setup --for "$(needs_of FILE ...)" installs all of them at once.
needs_of() {
  {
    printf '%s\n' build test
    [ $# -eq 0 ] || sed -n 's/^# needs: *//p' "$@" | tr -s ' ' '\n'
  } | sort -u | paste -sd ' ' -
}

installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# missing_packages GROUP ... prints what has to be installed for those groups, one package a line.
missing_packages() {
  for group; do
    sed -n "s/^$group  *//p" "$root/scripts/packages.txt"
  done | sort -u | while IFS='|' read -r first second; do
    if installed "$first" || { [ -n "$second" ] && installed "$second"; }; then
      continue
    fi
    if [ -n "$second" ] && ! apt-cache show "$first" >/dev/null 2>&1; then
      first=$second
    fi
    echo "$first"
  done
}

# need_packages GROUP ... installs the missing packages; where it may not, it says how.
need_packages() {
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null || die "this is not Debian; install what corresponds to: $missing"
  [ "$(id -u)" -eq 0 ] || die "packages are missing; run: sudo apt-get install --no-install-recommends $missing"
  apt_log=$(mktemp)
  say "      updating the package lists ..."
  quietly "$apt_log" apt-get -q -o DPkg::Lock::Timeout=600 update
  missing=$(missing_packages "$@" | tr '\n' ' ')
  say "      installing $missing..."
  # The runlevel keeps servers among them from being started as services of this machine. Files of packages can be had again:
  # waiting for the disk after each of them would double the time.
  # shellcheck disable=SC2086 # one argument for each package
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive quietly "$apt_log" apt-get -q -y -o DPkg::Lock::Timeout=600 \
    --no-install-recommends -o DPkg::Options::=--force-unsafe-io install $missing
  rm -f "$apt_log"
}
