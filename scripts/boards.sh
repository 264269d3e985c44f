# Sourced by the scripts, which set root: the facts of boards, from port/boards/NAME/board.conf.

# default_board prints the board that is meant where none is named.
default_board() { cat "$root/port/boards/default"; }

# all_boards prints the names of all boards, one a line.
all_boards() {
  for board_file in "$root"/port/boards/*/board.conf; do
    board_file=${board_file%/board.conf}
    echo "${board_file##*/}"
  done
}

# is_board NAME
is_board() {
  case $1 in '' | */* | .*) return 1 ;; esac
  [ -f "$root/port/boards/$1/board.conf" ]
}

# want_board NAME ends the script unless there is such a board.
want_board() {
  is_board "$1" || die "no such board: $1; there are: $(all_boards | tr '\n' ' ')"
}

# board_fact BOARD NAME prints a value of its board.conf; nothing if there is none.
board_fact() {
  sed -n "s/^$2=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" "$root/port/boards/$1/board.conf" | tail -n 1
}

# board_target BOARD prints the target that it is built for.
board_target() {
  board_answer=$(board_fact "$1" target)
  [ "$board_answer" != native ] || board_answer=$(uname -m)-linux-musl
  echo "$board_answer"
}

# board_emulator BOARD prints the command that runs its programs on this machine; nothing where they run as they are.
board_emulator() {
  board_cpu=$(board_target "$1")
  board_cpu=${board_cpu%%-*}
  [ "$board_cpu" = "$(uname -m)" ] || echo "qemu-${board_cpu%v7}"
}

# board_kilobytes BOARD NAME prints a size (29M, 512K) in kilobytes.
board_kilobytes() {
  board_size=$(board_fact "$1" "$2")
  case $board_size in
    *M) echo $((${board_size%M} * 1024)) ;;
    *K) echo "${board_size%K}" ;;
    *) echo 0 ;;
  esac
}
