################################################################################
#
# coir
#
################################################################################

COIR_VERSION = @VERSION@
COIR_SITE = $(BR2_EXTERNAL_COIR_PATH)/source
COIR_SITE_METHOD = file
COIR_LICENSE = MIT, BSD-3-Clause (inih), Apache-2.0 or GPL-2.0+ (mbedTLS)
COIR_LICENSE_FILES = LICENSE third-party/mbedtls/LICENSE third-party/yyjson/LICENSE \
	third-party/inih/LICENSE.txt

COIR_CONF_OPTS = \
	-DCOIR_BUILD_TESTS=OFF \
	-DCOIR_CXX=OFF \
	-DCOIR_WERROR=OFF \
	-DCOIR_CCACHE= \
	-DCOIR_PICOHTTPPARSER_DIR=$(@D)/third-party/picohttpparser \
	-DCOIR_INIH_DIR=$(@D)/third-party/inih \
	-DCOIR_MBEDTLS_DIR=$(@D)/third-party/mbedtls \
	-DCOIR_YYJSON_DIR=$(@D)/third-party/yyjson

ifeq ($(BR2_PACKAGE_COIR_TLS),y)
COIR_CONF_OPTS += -DCOIR_TLS=ON
else
COIR_CONF_OPTS += -DCOIR_TLS=OFF
endif

ifeq ($(BR2_PACKAGE_COIR_ONE_CORE),y)
COIR_CONF_OPTS += -DCOIR_SINGLE_WORKER=ON
else
COIR_CONF_OPTS += -DCOIR_SINGLE_WORKER=OFF
endif

define COIR_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(@D)/apps/coird/coird $(TARGET_DIR)/usr/sbin/coird
	$(INSTALL) -d $(TARGET_DIR)/usr/bin
	ln -sf ../sbin/coird $(TARGET_DIR)/usr/bin/coirctl
endef

define COIR_INSTALL_INIT_SYSV
	$(INSTALL) -D -m 0755 $(@D)/port/init/busybox/etc/init.d/S90coird \
		$(TARGET_DIR)/etc/init.d/S90coird
	$(INSTALL) -D -m 0644 $(@D)/port/init/busybox/etc/default/coird \
		$(TARGET_DIR)/etc/default/coird
	$(SED) 's|/mnt/data/www|/srv/coird|' $(TARGET_DIR)/etc/default/coird
	$(INSTALL) -d $(TARGET_DIR)/srv/coird
endef

# With this line init starts coird, and starts it again whenever it ends.
ifeq ($(BR2_INIT_BUSYBOX),y)
COIR_INITTAB_ID = :
else ifeq ($(BR2_INIT_SYSV),y)
COIR_INITTAB_ID = coir:2345
endif
ifneq ($(COIR_INITTAB_ID),)
define COIR_ADD_RESPAWN
	if ! grep -q ':respawn:/etc/init.d/S90coird run$$' $(TARGET_DIR)/etc/inittab; then \
		echo '$(COIR_INITTAB_ID):respawn:/etc/init.d/S90coird run' \
			>> $(TARGET_DIR)/etc/inittab; \
	fi
endef
COIR_TARGET_FINALIZE_HOOKS += COIR_ADD_RESPAWN
endif

define COIR_INSTALL_INIT_SYSTEMD
	$(INSTALL) -D -m 0644 $(@D)/port/init/systemd/etc/systemd/system/coird.service \
		$(TARGET_DIR)/usr/lib/systemd/system/coird.service
	$(INSTALL) -D -m 0644 $(@D)/port/init/systemd/etc/default/coird \
		$(TARGET_DIR)/etc/default/coird
endef

$(eval $(cmake-package))
