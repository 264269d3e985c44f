#!/bin/sh
# Builds the emulated board's userland: a static busybox for riscv64 over the musl sysroot, $OUT/busybox.
#
#   SOURCE=busybox.tar.bz2 OUT=dir SYSROOT=dir busybox.sh     (run in an empty working directory)
#
# Only what the board's scripts, its users and the tests run is on; qemu/build-rootfs asks the binary for its applets.
set -eu

tar -xf "$SOURCE" --strip-components=1

cat >wanted <<'END'
STATIC LFS SHOW_USAGE LONG_OPTS FEATURE_DEVPTS FEATURE_INSTALLER BUSYBOX FEATURE_FANCY_ECHO FEATURE_FANCY_HEAD
FEATURE_FANCY_SLEEP FEATURE_FANCY_TAIL FEATURE_HUMAN_READABLE FEATURE_EDITING FEATURE_TAB_COMPLETION FLOAT_DURATION
INIT FEATURE_USE_INITTAB FEATURE_INIT_SYSLOG FEATURE_INIT_COREDUMPS HALT REBOOT POWEROFF START_STOP_DAEMON
FEATURE_START_STOP_DAEMON_FANCY FEATURE_START_STOP_DAEMON_LONG_OPTIONS
ASH SH_IS_ASH ASH_ALIAS ASH_ECHO ASH_PRINTF ASH_TEST ASH_GETOPTS ASH_CMDCMD ASH_JOB_CONTROL ASH_OPTIMIZE_FOR_SIZE
ASH_INTERNAL_GLOB FEATURE_SH_MATH FEATURE_SH_MATH_64 FEATURE_SH_READ_FRAC
AWK BASE64 BASENAME CAT CHGRP CHMOD CHOWN CHROOT CMP CP CUT DATE FEATURE_DATE_ISOFMT DD FEATURE_DD_IBS_OBS DF DIFF
DIRNAME DMESG DU ECHO ENV EXPR FALSE FIND FEATURE_FIND_TYPE FEATURE_FIND_EXEC FREE GREP EGREP FGREP HEAD HEXDUMP
HOSTNAME ID KILL KILLALL LN LOGGER LS FEATURE_LS_FILETYPES FEATURE_LS_SORTFILES FEATURE_LS_TIMESTAMPS MD5SUM MKDIR
MKFIFO MKNOD MKTEMP MORE MOUNT FEATURE_MOUNT_FLAGS MV NICE NOHUP OD PIDOF PRINTF PS FEATURE_PS_WIDE PWD READLINK
FEATURE_READLINK_FOLLOW REALPATH RM RMDIR SED SEQ SETSID SHA256SUM SLEEP SORT STAT FEATURE_STAT_FORMAT STTY SWAPON SWAPOFF
SYNC BB_SYSCTL TAIL TAR FEATURE_TAR_CREATE TEE TEST TEST1 TEST2 TIME TIMEOUT TOP TOUCH TR TRUE UMOUNT UNAME UNIQ UPTIME
USLEEP VI WC WATCH WHICH XARGS YES GZIP GUNZIP ZCAT
HTTPD FEATURE_HTTPD_RANGES IFCONFIG FEATURE_IFCONFIG_STATUS IP FEATURE_IP_ADDRESS FEATURE_IP_LINK FEATURE_IP_ROUTE NC
NC_SERVER NETSTAT FEATURE_NETSTAT_WIDE PING PING6 FEATURE_FANCY_PING ROUTE WGET FEATURE_WGET_LONG_OPTIONS FEATURE_IPV6
UDHCPC
END
for option in $(cat wanted); do
  echo "CONFIG_$option=y"
done >fragment
cat >>fragment <<END
CONFIG_PREFIX="$OUT"
CONFIG_FEATURE_EDITING_MAX_LEN=1024
CONFIG_FEATURE_EDITING_HISTORY=50
CONFIG_FEATURE_COPYBUF_KB=4
CONFIG_MD5_SMALL=1
CONFIG_SHA3_SMALL=1
END

# The sysroot carries no compiler start files beyond musl's own, so the link line names everything.
cat >riscv64-cc <<END
#!/bin/sh
link=yes
for argument; do
  case \$argument in -c | -E | -S) link=no ;; esac
done
set -- clang-19 --target=riscv64-linux-musl -march=rv64gc -mabi=lp64d --sysroot="$SYSROOT" -fuse-ld=lld \
  -Wno-unused-command-line-argument -Wno-ignored-optimization-argument "\$@"
[ \$link = no ] || set -- "\$@" -static -nostdlib "$SYSROOT/usr/lib/crt1.o" -L"$SYSROOT/usr/lib" -lc -lgcc
exec "\$@"
END
chmod +x riscv64-cc

export KCONFIG_NOTIMESTAMP=1 SOURCE_DATE_EPOCH=0
set -- ARCH=riscv CC="$PWD/riscv64-cc" AR=llvm-ar-19 NM=llvm-nm-19 STRIP=llvm-strip-19 OBJCOPY=llvm-objcopy-19 HOSTCC=cc
make "$@" allnoconfig >/dev/null
# The first of two lines for one option counts; what the fragment newly offers is answered with its default.
cat fragment .config >merged
mv merged .config
yes '' | make "$@" oldconfig >/dev/null 2>&1
grep "=y" fragment | grep -vxFf .config | sed "s,^,busybox does not take ," >refused || true
[ ! -s refused ] || { cat refused; exit 1; }
make "$@" -j"$(nproc)" busybox
cp busybox "$OUT/busybox"
