# Nothing: openwrt.mk stands for it.
