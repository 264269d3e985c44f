# Sourced by scripts/test: which tests can tell the difference that a change makes.

# changed_files prints the files that differ from COIR_BASE, or from where the branch left its upstream, or else from the
# last commit but one; what is not committed included.
changed_files() {
  base=${COIR_BASE:-$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse --verify -q HEAD~1 || echo HEAD)}
  git rev-parse --verify -q "$base^{commit}" >/dev/null || die "no such commit: $base"
  {
    git diff --name-only "$base" --
    git ls-files --others --exclude-standard
  } | sort -u
}

# select_changed TREES FILES sets trees, files and match to what a change can touch. Where that is unknown it selects all.
select_changed() {
  changed_files >"$scratch/changed"
  say "changed: $(wc -l <"$scratch/changed") files"
  everything='' units='' systems='' foreign='' net='' boards=''
  while IFS= read -r file; do
    case $file in
      *.md | LICENSE | .gitignore | .clang-format | CHANGELOG* | scripts/bench | scripts/size | tests/bench/*) ;;
      tests/unit/*_test.cpp) name=${file##*/}; units="$units ${name%_test.cpp}" ;;
      scripts/flash | scripts/flash.d/* | tests/system/cards/*) systems="$systems tests/system/flash tests/system/vm_flash" ;;
      tests/system/*/*) everything=yes ;;
      tests/system/*) [ ! -x "$file" ] || systems="$systems $file" ;;
      port/arch/*) foreign=yes ;;
      port/boards/* | port/init/* | qemu/*) boards=yes ;;
      scripts/new-app | scripts/new-board | scripts/boards.sh) boards=yes ;;
      net/* | apps/*) net=yes ;;
      *) everything=yes ;;
    esac
  done <"$scratch/changed"

  trees='' files=tests/system/shape.sh
  if [ -n "$everything$foreign" ]; then
    trees=$1 files=$2
    return
  fi
  if [ -n "$net" ]; then
    # core knows nothing of net: its unit tests cannot tell.
    trees=$1 match='^(http|tls|tcp|serial|unix|resolve|address|classic_echo)'
    for name in $units; do match="$match|^$name\$"; done
    files=$2
  elif [ -n "$units" ]; then
    trees=$1 match=
    for name in $units; do match="$match${match:+|}^$name\$"; done
  fi
  [ -z "$boards" ] || files="$files $(echo "$2" | grep -E '/(vm_|vendor_|boards$|new_app$|flash$)')"
  for file in $systems; do
    case " $files " in
      *"$file"*) ;;
      *) files="$files $file" ;;
    esac
  done
}
