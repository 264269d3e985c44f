# Sourced by scripts/package: the programs for a machine of any distribution, with an installer that undoes itself.

make_tarball() {
  build_programs
  name=coir-$version-${board:-$target}
  mkdir -p "$work/$name/usr/sbin" "$work/$name/usr/bin"
  cp "$work/bin/coird" "$work/$name/usr/sbin/"
  ln -s ../sbin/coird "$work/$name/usr/bin/coirctl"
  cp -R "$root/port/init" "$work/$name/init"
  find "$work/$name/init" -name README.md -delete
  cp "$root/scripts/package.d/install.sh" "$root/LICENSE" "$root/CHANGELOG.md" "$work/$name/"
  pack "$name" "$name.tar.gz"
}
