# Sourced by the scripts of this folder: what an emulated machine is called, by the CPU of its target.

# set_machine TARGET sets system (QEMU's program), kernel (the variant of build-kernel that boots by default), console (the
# kernel's name for the first serial line), userland (the busybox in the cache) and parameters (more for the kernel).
set_machine() {
  case $1 in
    riscv64-*) system=qemu-system-riscv64 kernel=board console=ttyS0 userland=busybox-riscv64 parameters=no4lvl ;;
    armv7-*) system=qemu-system-arm kernel=armv7 console=ttyAMA0 userland=busybox-armv7 parameters='' ;;
    *) die "there is no emulated machine for $1; there are some for riscv64 and armv7 (qemu/machines.sh)" ;;
  esac
}
