# Sourced by scripts/package: an external tree for Buildroot (BR2_EXTERNAL).

make_buildroot() {
  tree=$work/coir-$version-buildroot
  cp -R "$root/scripts/package.d/buildroot" "$tree"
  source_into "$tree/source"
  sed -i "s/@VERSION@/$version/" "$tree/package/coir/coir.mk"
  {
    echo "# Locally calculated"
    (cd "$tree/source" && sha256sum "coir-$version.tar.gz" | sed 's/^/sha256  /')
    for file in LICENSE third-party/mbedtls/LICENSE third-party/yyjson/LICENSE third-party/inih/LICENSE.txt; do
      printf 'sha256  %s  %s\n' "$(sha256sum <"$work/coir-$version/$file" | cut -d' ' -f1)" "$file"
    done
  } >"$tree/package/coir/coir.hash"
  pack "${tree##*/}" "${tree##*/}.tar.gz"
}
