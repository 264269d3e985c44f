# Sourced by the scripts, which set root: the facts of boards. A board is named by its folder of port/boards, or by the path
# of a folder elsewhere.

# default_board prints the board that is meant where none is named.
default_board() { cat "$root/port/boards/default"; }

# all_boards prints the names of all boards, one a line.
all_boards() {
  for board_file in "$root"/port/boards/*/board.conf; do
    board_file=${board_file%/board.conf}
    echo "${board_file##*/}"
  done
}

# board_folder BOARD prints where it lies.
board_folder() {
  case $1 in
    */*) echo "$1" ;;
    *) echo "$root/port/boards/$1" ;;
  esac
}

# board_name BOARD prints what its build tree is called.
board_name() { basename -- "$1"; }

# whole_board BOARD prints its name, or the whole path of a folder elsewhere, of which the name must be no other board's.
whole_board() {
  case $1 in
    */*) ;;
    *) echo "$1"; return ;;
  esac
  whole_path=$(realpath -- "$1")
  whole_name=$(board_name "$whole_path")
  if [ "$whole_path" = "$root/port/boards/$whole_name" ]; then
    echo "$whole_name"
  elif is_board "$whole_name"; then
    die "$1: port/boards has a board of this name; rename the folder"
  else
    echo "$whole_path"
  fi
}

# is_board BOARD
is_board() {
  [ -n "$1" ] && [ -f "$(board_folder "$1")/board.conf" ]
}

# want_board BOARD ends the script unless there is such a board.
want_board() {
  is_board "$1" || die "no such board: $1; there are: $(all_boards | tr '\n' ' ')"
}

# board_fact BOARD NAME prints a value of its board.conf; nothing if there is none.
board_fact() {
  sed -n "s/^$2=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" "$(board_folder "$1")/board.conf" | tail -n 1
}

# board_target BOARD prints the target that it is built for.
board_target() {
  board_answer=$(board_fact "$1" target)
  [ "$board_answer" != native ] || board_answer=$(uname -m)-linux-musl
  echo "$board_answer"
}

# all_targets prints the targets with a C library of their own, one a line.
all_targets() {
  for target_file in "$root"/toolchains/*-linux-*.cmake; do
    target_file=${target_file##*/}
    echo "${target_file%.cmake}"
  done
}

# tree_target TREE prints the target of a build tree, which is named after a board, or after its target and what it leaves out.
tree_target() {
  if is_board "$1"; then
    board_target "$1"
    return
  fi
  for target_answer in $(all_targets) host; do
    case $1 in "$target_answer" | "$target_answer"-*) echo "$target_answer"; return ;; esac
  done
}

# board_cpu BOARD prints the CPU of its target: what its emulated machine is called by.
board_cpu() {
  cpu_answer=$(board_target "$1")
  echo "${cpu_answer%%-*}"
}

# target_emulator TARGET prints the command that runs its programs on this machine; nothing where they run as they are.
target_emulator() {
  [ "${1%%-*}" != "$(uname -m)" ] || return 0
  target_answer=$(sed -n 's/^set(COIR_TARGET_EMULATOR \(.*\))$/\1/p' "$root/toolchains/$1.cmake")
  target_answer=${target_answer:-qemu-${1%%-*}}
  command -v "$target_answer" >/dev/null || target_answer=$target_answer-static
  echo "$target_answer"
}

# board_emulator BOARD prints the same for its programs.
board_emulator() { target_emulator "$(board_target "$1")"; }

# kilobytes SIZE prints a size such as 29M or 512K in kilobytes; 0 for what is none.
kilobytes() {
  case ${1%[MK]} in
    '' | *[!0-9]*) echo 0 ;;
    *) case $1 in
      *M) echo $((${1%M} * 1024)) ;;
      *K) echo "${1%K}" ;;
      *) echo 0 ;;
    esac ;;
  esac
}

# board_kilobytes BOARD NAME prints a fact that is a size in kilobytes.
board_kilobytes() { kilobytes "$(board_fact "$1" "$2")"; }

# vm_kilobytes SEEN prints how much RAM an emulated machine gets for its Linux to see so many kilobytes (MemTotal): the
# kernel takes 5 MB for itself, and 64 bytes for each page.
vm_kilobytes() { echo $(($1 + $1 / 64 + 5416)); }
