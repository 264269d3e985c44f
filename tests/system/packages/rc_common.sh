# usage: busybox ash rc_common.sh CONFIG INIT-SCRIPT ACTION
#
# What OpenWrt's /etc/rc.common and its shell libraries do, as far as an init script for procd sees it: options come from the
# file CONFIG, and what procd is told is printed, a call a line.
config=$1 script=$2 action=$3

config_load() { echo "config_load $1"; }

# values NAME prints the values of an option, or of a list, a line each.
values() {
	sed -n "s/^[[:space:]]*\(option\|list\) $1 '\(.*\)'\$/\2/p" "$config"
}
config_get() {
	local found
	found=$(values "$3" | head -n 1)
	eval "$1=\${found:-${4:-}}"
}
config_get_bool() {
	local found
	found=$(values "$3" | head -n 1)
	case ${found:-$4} in 1 | on | true | yes | enabled) eval "$1=1" ;; *) eval "$1=0" ;; esac
}
config_list_foreach() {
	local section=$1 list=$2 called=$3 each
	shift 3
	values "$list" >"$config.values.$list"
	while IFS= read -r each; do
		"$called" "$each" "$@"
	done <"$config.values.$list"
	rm "$config.values.$list"
}
for each in procd_open_instance procd_close_instance procd_set_param procd_append_param procd_add_reload_trigger; do
	eval "$each() { echo $each \"\$@\"; }"
done

. "$script"
case $action in
	start) start_service ;;
	triggers) service_triggers ;;
esac
