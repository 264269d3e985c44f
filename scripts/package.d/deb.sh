# Sourced by scripts/package: a Debian package. The programs are static: it depends on nothing.

make_deb() {
  command -v dpkg-deb >/dev/null || die "no dpkg-deb: install the package dpkg"
  [ -f "$root/toolchains/$target.cmake" ] || die "no such target: $target (scripts/build --help names them)"
  architecture=$(sed -n 's/^set(COIR_TARGET_DEBIAN \(.*\))$/\1/p' "$root/toolchains/$target.cmake")
  [ -n "$architecture" ] || die "toolchains/$target.cmake does not say what Debian calls it (COIR_TARGET_DEBIAN)"
  build_programs
  tree=$work/deb parts=$root/scripts/package.d/deb
  lay "$work/bin/coird" usr/sbin/coird 755
  mkdir -p "$tree/usr/bin"
  ln -s ../sbin/coird "$tree/usr/bin/coirctl"
  lay "$root/port/init/systemd/etc/default/coird" etc/default/coird
  lay "$root/port/init/systemd/etc/systemd/system/coird.service" lib/systemd/system/coird.service
  lay "$parts/copyright" usr/share/doc/coird/copyright
  lay "$parts/lintian-overrides" usr/share/lintian/overrides/coird
  manual coird 8 "HTTP daemon with a memory budget"
  manual coirctl 1 "tools for a board's shell"
  changelog | gzip -9n >"$work/changelog.gz"
  lay "$work/changelog.gz" usr/share/doc/coird/changelog.gz
  lay "$parts/postinst" DEBIAN/postinst 755
  lay "$parts/prerm" DEBIAN/prerm 755
  lay "$parts/postrm" DEBIAN/postrm 755
  echo /etc/default/coird >"$work/conffiles"
  lay "$work/conffiles" DEBIAN/conffiles
  kilobytes=$(du -sk --apparent-size "$tree" | cut -f1)
  sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@KILOBYTES@/$kilobytes/" "$parts/control" >"$work/control"
  lay "$work/control" DEBIAN/control
  (cd "$tree" && find etc lib usr -type f | LC_ALL=C sort | xargs md5sum) >"$work/md5sums"
  lay "$work/md5sums" DEBIAN/md5sums
  find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  # By one thread: how many there are shows in the bytes.
  DPKG_DEB_THREADS_MAX=1 quietly "$work/log" dpkg-deb --root-owner-group -Zxz --build "$tree" "$work/coird.deb"
  mv "$work/coird.deb" "$out/coird_${version}_$architecture.deb"
  echo "$out/coird_${version}_$architecture.deb"
}

# lay FILE PLACE [MODE]
lay() {
  install -D -m "${3:-644}" "$1" "$tree/$2"
}

# manual PROGRAM SECTION WHAT makes a manual page of what the program says of itself.
manual() {
  emulator=$(target_emulator "$target")
  # shellcheck disable=SC2086 # none, or one word
  {
    printf '.TH %s %s "%s" "coir %s"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n' "$(echo "$1" | tr a-z A-Z)" "$2" \
      "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)" "$version" "$1" "$3"
    $emulator "$work/bin/$1" --help | sed 's/\\/\\\\/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/'
    echo .fi
  } | gzip -9n >"$work/$1.gz"
  lay "$work/$1.gz" "usr/share/man/man$2/$1.$2.gz"
}

# changelog prints the newest part of CHANGELOG.md as Debian wants it.
changelog() {
  printf 'coird (%s) unstable; urgency=medium\n\n' "$version"
  awk '/^## / { if (++parts == 2) exit; next }
       parts && /^- / { print "  * " substr($0, 3); next }
       parts && /^  / { print "    " substr($0, 3) }' "$root/CHANGELOG.md" | fold -s -w 76 | sed 's/^\([^ ]\)/    \1/; s/ *$//'
  printf '\n -- the coir authors <coir@example.org>  %s\n' "$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')"
}
