# Sourced by scripts/package: a package for a feed of OpenWrt.

make_openwrt() {
  tree=$work/coir-$version-openwrt
  mkdir "$tree"
  cp -R "$root/scripts/package.d/openwrt/coir" "$tree/coir"
  cp "$root/port/init/procd/etc/init.d/coird" "$tree/coir/files/coird.init"
  cp "$root/port/init/procd/etc/config/coird" "$tree/coir/files/coird.config"
  source_into "$tree/coir/source"
  hash=$(sha256sum <"$tree/coir/source/coir-$version.tar.gz" | cut -d' ' -f1)
  sed -i "s/@VERSION@/$version/; s/@HASH@/$hash/" "$tree/coir/Makefile"
  pack "${tree##*/}" "${tree##*/}.tar.gz"
}
