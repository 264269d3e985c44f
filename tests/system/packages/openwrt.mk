# This does what OpenWrt does with a package of its cmake infrastructure, as far as a package's Makefile sees it:
#
#   make -f openwrt.mk PACKAGE=DIR PKG_BUILD_DIR=SOURCES TO=DIR options|install
TOPDIR := $(dir $(lastword $(MAKEFILE_LIST)))openwrt
INCLUDE_DIR := $(TOPDIR)
INSTALL_DIR = install -d -m0755
INSTALL_BIN = install -m0755
INSTALL_CONF = install -m0600
INSTALL_DATA = install -m0644
LN = ln -sf
include $(PACKAGE)/Makefile

options:
	@echo $(CMAKE_OPTIONS)
install:
	$(call Package/coird/install,$(TO))
conffiles:
	$(info $(Package/coird/conffiles))@:
