// void abi_probe(void** save_sp, void* next_sp, const uint64_t* fill, uint64_t* seen)
//
// Fills every callee-saved register from `fill`, switches, and when switched back to leaves what it finds in `seen`.
// The order is that of kRegisters in context_abi.h.

  .text
  .globl abi_probe
  .type abi_probe, %function
abi_probe:
  sub sp, sp, #192
  stp x29, x30, [sp]
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mrs x4, fpcr
  stp x3, x4, [sp, #160]

  ldp x19, x20, [x2]
  ldp x21, x22, [x2, #16]
  ldp x23, x24, [x2, #32]
  ldp x25, x26, [x2, #48]
  ldp x27, x28, [x2, #64]
  ldr x29, [x2, #80]
  ldp d8, d9, [x2, #88]
  ldp d10, d11, [x2, #104]
  ldp d12, d13, [x2, #120]
  ldp d14, d15, [x2, #136]
  ldr x4, [x2, #152]
  msr fpcr, x4
  bl coir_switch
  ldp x3, x5, [sp, #160]
  stp x19, x20, [x3]
  stp x21, x22, [x3, #16]
  stp x23, x24, [x3, #32]
  stp x25, x26, [x3, #48]
  stp x27, x28, [x3, #64]
  str x29, [x3, #80]
  stp d8, d9, [x3, #88]
  stp d10, d11, [x3, #104]
  stp d12, d13, [x3, #120]
  stp d14, d15, [x3, #136]
  mrs x4, fpcr
  str x4, [x3, #152]

  msr fpcr, x5
  ldp x29, x30, [sp]
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #192
  ret
  .size abi_probe, .-abi_probe

  .section .note.GNU-stack, "", %progbits
