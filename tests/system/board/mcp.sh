# Sourced by tests that boot the emulated board: coird for agents, with sensors and pins that are a folder of the data disk.
#
#   mcp_prepare    adds to coird_args and to $vm_dir/data
#   mcp_promises

agent() { PYTHONDONTWRITEBYTECODE=1 timeout 120 python3 "$root/tests/system/coird/agent_board.py" "$vm_url" "$1"; }

mcp_prepare() {
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/system/coird python3 -c \
    'import sys; from agent import Board; Board.place(sys.argv[1])' "$vm_dir/data/board"
  tools='system memory temperature leds read_pin led fetch'
  coird_args="$coird_args --mcp /mcp --sysfs /mnt/data/board --mcp-fetch-allow 127.0.0.1"
  for tool in $tools; do coird_args="$coird_args --mcp-tool $tool"; done
}

mcp_promises() {
  promise "tools that were switched on are listed" agent lists
  promise "tools are called: the board itself, its sensors and pins" agent calls
  promise "a call tells of its progress" agent progresses
  promise "a stream listens while calls go on" agent listens
}
