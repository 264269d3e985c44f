# This does what Buildroot does with a package of its cmake infrastructure, as far as a package's .mk sees it:
#
#   make -f buildroot.mk BR2_EXTERNAL_COIR_PATH=DIR BR2_PACKAGE_COIR_TLS=y SOURCES=DIR TARGET_DIR=DIR [BR2_INIT_...=y] options|install
INSTALL = install
SED = sed -i -e
COIR_PKGDIR = $(BR2_EXTERNAL_COIR_PATH)/package/coir
cmake-package =

options: $(SOURCES)/.options
install: $(SOURCES)/.install
include $(BR2_EXTERNAL_COIR_PATH)/external.mk

# $(@D) is the folder of the sources there.
$(SOURCES)/.options:
	@echo $(COIR_CONF_OPTS)
$(SOURCES)/.install:
	$(COIR_INSTALL_TARGET_CMDS)
	$(if $(BR2_INIT_SYSTEMD),$(COIR_INSTALL_INIT_SYSTEMD),$(COIR_INSTALL_INIT_SYSV))
	$(foreach hook,$(COIR_TARGET_FINALIZE_HOOKS),$($(hook)))
