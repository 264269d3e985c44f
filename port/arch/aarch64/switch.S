// The context switch on aarch64. port/arch/riscv64/switch.S explains the steps and the unwind information; here is
// what differs.

#include <coir/port/arch/aarch64.h>

// void* coir_switch(void** save_sp, void* next_sp, void* message)
//
// Entry  x0 = where to leave this context's stack pointer, x1 = the stack pointer to take up, x2 = the message.
// Exit   x0 = the message.
// Frame  sp +0    x29 x30        a frame record; x30 is where the parked context goes on
//           +16   x19 .. x28
//           +96   d8 .. d15      the low halves of v8 .. v15 are callee-saved, no more of them, SVE's included
//           +160  fpcr
//           +176                 the caller's sp, which is the CFA
//
// AAPCS64 calls fpcr global state that only functions made for it may change, and the switch is none of these: it is
// kept, and written only where the two contexts differ. x18 is not used on Linux. A return address that the caller
// signed (PAC) passes through unchanged and is checked by the caller against the same sp as before.

  .text
  .p2align 6
  .globl coir_switch
  .hidden coir_switch
  .type coir_switch, %function
coir_switch:
  .cfi_startproc
  sub sp, sp, #COIR_FRAME_SIZE
  .cfi_def_cfa_offset COIR_FRAME_SIZE
  stp x29, x30, [sp, #COIR_FRAME_X29]
  stp x19, x20, [sp, #COIR_FRAME_X19]
  stp x21, x22, [sp, #COIR_FRAME_X21]
  stp x23, x24, [sp, #COIR_FRAME_X23]
  stp x25, x26, [sp, #COIR_FRAME_X25]
  stp x27, x28, [sp, #COIR_FRAME_X27]
  stp d8, d9, [sp, #COIR_FRAME_D8]
  stp d10, d11, [sp, #COIR_FRAME_D10]
  stp d12, d13, [sp, #COIR_FRAME_D12]
  stp d14, d15, [sp, #COIR_FRAME_D14]
  mrs x3, fpcr
  str x3, [sp, #COIR_FRAME_FPCR]
  .cfi_rel_offset x29, COIR_FRAME_X29
  .cfi_rel_offset x30, COIR_FRAME_X30
  .cfi_rel_offset x19, COIR_FRAME_X19
  .cfi_rel_offset x20, COIR_FRAME_X20
  .cfi_rel_offset x21, COIR_FRAME_X21
  .cfi_rel_offset x22, COIR_FRAME_X21+8
  .cfi_rel_offset x23, COIR_FRAME_X23
  .cfi_rel_offset x24, COIR_FRAME_X23+8
  .cfi_rel_offset x25, COIR_FRAME_X25
  .cfi_rel_offset x26, COIR_FRAME_X25+8
  .cfi_rel_offset x27, COIR_FRAME_X27
  .cfi_rel_offset x28, COIR_FRAME_X27+8
  .cfi_rel_offset d8, COIR_FRAME_D8
  .cfi_rel_offset d9, COIR_FRAME_D8+8
  .cfi_rel_offset d10, COIR_FRAME_D10
  .cfi_rel_offset d11, COIR_FRAME_D10+8
  .cfi_rel_offset d12, COIR_FRAME_D12
  .cfi_rel_offset d13, COIR_FRAME_D12+8
  .cfi_rel_offset d14, COIR_FRAME_D14
  .cfi_rel_offset d15, COIR_FRAME_D14+8

  mov x4, sp
  str x4, [x0]
  mov sp, x1
  .globl coir_switch_parked
  .hidden coir_switch_parked
coir_switch_parked:

  ldr x4, [sp, #COIR_FRAME_FPCR]
  cmp x3, x4
  b.ne .Lother_fpcr
.Lfpcr_set:
  ldp x29, x30, [sp, #COIR_FRAME_X29]
  ldp x19, x20, [sp, #COIR_FRAME_X19]
  ldp x21, x22, [sp, #COIR_FRAME_X21]
  ldp x23, x24, [sp, #COIR_FRAME_X23]
  ldp x25, x26, [sp, #COIR_FRAME_X25]
  ldp x27, x28, [sp, #COIR_FRAME_X27]
  ldp d8, d9, [sp, #COIR_FRAME_D8]
  ldp d10, d11, [sp, #COIR_FRAME_D10]
  ldp d12, d13, [sp, #COIR_FRAME_D12]
  ldp d14, d15, [sp, #COIR_FRAME_D14]
  .cfi_remember_state
  add sp, sp, #COIR_FRAME_SIZE
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  .cfi_restore x19
  .cfi_restore x20
  .cfi_restore x21
  .cfi_restore x22
  .cfi_restore x23
  .cfi_restore x24
  .cfi_restore x25
  .cfi_restore x26
  .cfi_restore x27
  .cfi_restore x28
  .cfi_restore d8
  .cfi_restore d9
  .cfi_restore d10
  .cfi_restore d11
  .cfi_restore d12
  .cfi_restore d13
  .cfi_restore d14
  .cfi_restore d15
  mov x0, x2
  ret
  .cfi_restore_state
.Lother_fpcr:
  msr fpcr, x4
  b .Lfpcr_set
  .cfi_endproc
  .size coir_switch, .-coir_switch

// x0 = the message, x19 = the entry, x20 = its argument, x29 = 0.

  .p2align 4
  .type coir_context_start, %function
coir_context_start:
  .cfi_startproc
  .cfi_undefined x30
  nop
  .globl coir_context_arrive
  .hidden coir_context_arrive
coir_context_arrive:
  mov x1, x20
  blr x19
  brk #1  // the entry returned
  .cfi_endproc
  .size coir_context_start, .-coir_context_start

// void* coir_call_on(void* stack_top, void* (*fn)(void*), void* argument)
//
// Entry  x0 = the other stack's top, x1 = the function, x2 = its argument.

  .p2align 4
  .globl coir_call_on
  .hidden coir_call_on
  .type coir_call_on, %function
coir_call_on:
  .cfi_startproc
  .cfi_signal_frame
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset x29, -16
  .cfi_offset x30, -8
  mov x29, sp
  .cfi_def_cfa_register x29
  and x3, x0, #-16
  mov sp, x3
  mov x0, x2
  blr x1
  mov sp, x29
  .cfi_def_cfa_register sp
  ldp x29, x30, [sp], #16
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  ret
  .cfi_endproc
  .size coir_call_on, .-coir_call_on

  .section .note.GNU-stack, "", %progbits
