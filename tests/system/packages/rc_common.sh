# usage: busybox ash rc_common.sh CONFIG INIT-SCRIPT ACTION
#
# This does what OpenWrt's /etc/rc.common and its shell libraries do, as far as an init script for procd sees it: options
# come from the file CONFIG, and each call of procd is printed on a line.
#
# As there, the libraries are read before the init script, and config_load evaluates the file, whose lines call `config`, `option`
# and `list`: an init script that has functions of these names gets no options.
config=$1 script=$2 action=$3

package() { :; }
config() { section=$2; }
option() { eval "value_${section}_$1=\$2"; }
list() {
	local number
	eval "number=\$((\${count_${section}_$1:-0} + 1))"
	eval "count_${section}_$1=\$number item_${section}_$1_$number=\$2"
}
config_load() { . "$config"; }
config_get() { eval "$1=\${value_$2_$3:-\${4:-}}"; }
config_get_bool() {
	local found
	config_get found "$2" "$3" "$4"
	case $found in 1 | on | true | yes | enabled) eval "$1=1" ;; *) eval "$1=0" ;; esac
}
config_list_foreach() {
	local section=$1 list=$2 called=$3 number=0 count each
	shift 3
	eval "count=\${count_${section}_$list:-0}"
	while [ "$number" -lt "$count" ]; do
		number=$((number + 1))
		eval "each=\$item_${section}_${list}_$number"
		"$called" "$each" "$@"
	done
}
for each in procd_open_instance procd_close_instance procd_set_param procd_append_param procd_add_reload_trigger \
	procd_running procd_send_signal; do
	eval "$each() { echo $each \"\$@\"; }"
done

# The names that /lib/functions.sh has.
for each in debug xor data_2bin data_2xor_val append prepend list_contains config_load reset_cb config_cb option_cb list_cb package \
	config option list config_unset config_get get_bool config_get_bool config_set config_foreach config_list_foreach include \
	ipcalc group_add group_exists user_add user_exists board_name cmdline_get_var; do
	if grep -q "^$each *()" "$script"; then
		echo "$script: $each is a function of OpenWrt's" >&2
		exit 1
	fi
done

start() { start_service; }

. "$script"
case $action in
	start) start ;;
	reload) if command -v reload_service >/dev/null; then reload_service; else start; fi ;;
	triggers) service_triggers ;;
esac
