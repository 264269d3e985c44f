// void abi_probe(void** save_sp, void* next_sp, const uint64_t* fill, uint64_t* seen)
//
// Fills every callee-saved register from `fill`, switches, and when switched back to leaves what it finds in `seen`.
// The order is that of kRegisters in context_abi.h.

  .macro integers op, base, at
  \op s0, \at+0(\base)
  \op s1, \at+8(\base)
  \op s2, \at+16(\base)
  \op s3, \at+24(\base)
  \op s4, \at+32(\base)
  \op s5, \at+40(\base)
  \op s6, \at+48(\base)
  \op s7, \at+56(\base)
  \op s8, \at+64(\base)
  \op s9, \at+72(\base)
  \op s10, \at+80(\base)
  \op s11, \at+88(\base)
  .endm

  .macro doubles op, base, at
#ifdef __riscv_float_abi_double
  \op fs0, \at+0(\base)
  \op fs1, \at+8(\base)
  \op fs2, \at+16(\base)
  \op fs3, \at+24(\base)
  \op fs4, \at+32(\base)
  \op fs5, \at+40(\base)
  \op fs6, \at+48(\base)
  \op fs7, \at+56(\base)
  \op fs8, \at+64(\base)
  \op fs9, \at+72(\base)
  \op fs10, \at+80(\base)
  \op fs11, \at+88(\base)
#endif
  .endm

  .text
  .globl abi_probe
  .type abi_probe, @function
abi_probe:
  addi sp, sp, -224
  sd ra, 0(sp)
  sd a3, 8(sp)
  integers sd, sp, 16
  doubles fsd, sp, 112
#ifdef __riscv_flen
  frrm t0
  sd t0, 208(sp)
#endif

  integers ld, a2, 0
  doubles fld, a2, 104
#ifdef __riscv_flen
  ld t0, 96(a2)
  fsrm t0
#endif
  call coir_switch
  ld a3, 8(sp)
  integers sd, a3, 0
  doubles fsd, a3, 104
#ifdef __riscv_flen
  frrm t0
  sd t0, 96(a3)
#endif

#ifdef __riscv_flen
  ld t0, 208(sp)
  fsrm t0
#endif
  integers ld, sp, 16
  doubles fld, sp, 112
  ld ra, 0(sp)
  addi sp, sp, 224
  ret
  .size abi_probe, .-abi_probe

  .section .note.GNU-stack, "", @progbits
