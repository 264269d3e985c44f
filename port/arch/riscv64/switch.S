// The context switch on riscv64: the reference. The other CPUs' files say only what differs.

#include <coir/port/arch/riscv64.h>

// void* coir_switch(void** save_sp, void* next_sp, void* message)
//
// Entry  a0 = where to leave this context's stack pointer, a1 = the stack pointer to take up, a2 = the message.
// Exit   a0 = the message; everything else that the ABI promises is as the resumed context left it.
// Frame  what is pushed, low to high (16-byte aligned, sp points at it while the context is parked):
//
//        sp +0    ra             where the parked context goes on
//           +8    s0             frame pointer: 0 at a context's first frame, so that a walk along them ends there
//           +16   s1 .. s11
//           +104  fs0 .. fs11    lp64d only: lp64 passes no double in registers and so preserves none
//           +200  frm            rounding mode; at +104 with lp64, and unused there without the F extension
//           +208                 the caller's sp, which is the CFA; +112 with lp64
//
// frm is not a callee-saved register: the psABI gives fcsr thread storage duration. It is kept all the same, because to
// the code in it a context is its thread, and may resume on another one. Reading it is cheap, writing it is not on
// every core, so it is written only where the two contexts differ. fflags is nobody's across a call. gp and tp are the
// thread's, and the vector registers (vl, vtype and vcsr too) are all caller-saved.
//
// Every line below is one of four steps: make room, save, exchange stacks, restore. Unwinding is right at each: the
// frame has one shape on both stacks, so "CFA = sp + size, registers at these offsets" holds on either side of the
// exchange; only whose CFA it is changes. Saving leaves the registers as they were, so the offsets are announced once,
// when all are written, and withdrawn once, when all are read back.
//
// It leaves by ret, which the processor predicts from its stack of return addresses. That is right where both contexts
// parked by the same call, as nearly all do; elsewhere it costs one misprediction.

  .text
  .p2align 4
  .globl coir_switch
  .hidden coir_switch
  .type coir_switch, @function
coir_switch:
  .cfi_startproc
  // Make room.
  addi sp, sp, -COIR_FRAME_SIZE
  .cfi_def_cfa_offset COIR_FRAME_SIZE

  // Save.
  sd ra, COIR_FRAME_RA(sp)
  sd s0, COIR_FRAME_S0(sp)
  sd s1, COIR_FRAME_S1(sp)
  sd s2, COIR_FRAME_S1+8(sp)
  sd s3, COIR_FRAME_S1+16(sp)
  sd s4, COIR_FRAME_S1+24(sp)
  sd s5, COIR_FRAME_S1+32(sp)
  sd s6, COIR_FRAME_S1+40(sp)
  sd s7, COIR_FRAME_S1+48(sp)
  sd s8, COIR_FRAME_S1+56(sp)
  sd s9, COIR_FRAME_S1+64(sp)
  sd s10, COIR_FRAME_S1+72(sp)
  sd s11, COIR_FRAME_S1+80(sp)
#ifdef __riscv_float_abi_double
  fsd fs0, COIR_FRAME_FS0(sp)
  fsd fs1, COIR_FRAME_FS0+8(sp)
  fsd fs2, COIR_FRAME_FS0+16(sp)
  fsd fs3, COIR_FRAME_FS0+24(sp)
  fsd fs4, COIR_FRAME_FS0+32(sp)
  fsd fs5, COIR_FRAME_FS0+40(sp)
  fsd fs6, COIR_FRAME_FS0+48(sp)
  fsd fs7, COIR_FRAME_FS0+56(sp)
  fsd fs8, COIR_FRAME_FS0+64(sp)
  fsd fs9, COIR_FRAME_FS0+72(sp)
  fsd fs10, COIR_FRAME_FS0+80(sp)
  fsd fs11, COIR_FRAME_FS0+88(sp)
#endif
#ifdef __riscv_flen
  frrm t0
  sd t0, COIR_FRAME_FRM(sp)
#endif
  .cfi_rel_offset ra, COIR_FRAME_RA
  .cfi_rel_offset s0, COIR_FRAME_S0
  .cfi_rel_offset s1, COIR_FRAME_S1
  .cfi_rel_offset s2, COIR_FRAME_S1+8
  .cfi_rel_offset s3, COIR_FRAME_S1+16
  .cfi_rel_offset s4, COIR_FRAME_S1+24
  .cfi_rel_offset s5, COIR_FRAME_S1+32
  .cfi_rel_offset s6, COIR_FRAME_S1+40
  .cfi_rel_offset s7, COIR_FRAME_S1+48
  .cfi_rel_offset s8, COIR_FRAME_S1+56
  .cfi_rel_offset s9, COIR_FRAME_S1+64
  .cfi_rel_offset s10, COIR_FRAME_S1+72
  .cfi_rel_offset s11, COIR_FRAME_S1+80
#ifdef __riscv_float_abi_double
  .cfi_rel_offset fs0, COIR_FRAME_FS0
  .cfi_rel_offset fs1, COIR_FRAME_FS0+8
  .cfi_rel_offset fs2, COIR_FRAME_FS0+16
  .cfi_rel_offset fs3, COIR_FRAME_FS0+24
  .cfi_rel_offset fs4, COIR_FRAME_FS0+32
  .cfi_rel_offset fs5, COIR_FRAME_FS0+40
  .cfi_rel_offset fs6, COIR_FRAME_FS0+48
  .cfi_rel_offset fs7, COIR_FRAME_FS0+56
  .cfi_rel_offset fs8, COIR_FRAME_FS0+64
  .cfi_rel_offset fs9, COIR_FRAME_FS0+72
  .cfi_rel_offset fs10, COIR_FRAME_FS0+80
  .cfi_rel_offset fs11, COIR_FRAME_FS0+88
#endif

  // Exchange stacks.
  sd sp, 0(a0)
  mv sp, a1
  .globl coir_switch_parked
  .hidden coir_switch_parked
coir_switch_parked:  // a debugger that sets pc here and sp to a parked context sees that context

  // Restore.
#ifdef __riscv_flen
  ld t1, COIR_FRAME_FRM(sp)
  bne t0, t1, .Lother_rounding
.Lrounding_set:
#endif
  ld ra, COIR_FRAME_RA(sp)
  ld s0, COIR_FRAME_S0(sp)
  ld s1, COIR_FRAME_S1(sp)
  ld s2, COIR_FRAME_S1+8(sp)
  ld s3, COIR_FRAME_S1+16(sp)
  ld s4, COIR_FRAME_S1+24(sp)
  ld s5, COIR_FRAME_S1+32(sp)
  ld s6, COIR_FRAME_S1+40(sp)
  ld s7, COIR_FRAME_S1+48(sp)
  ld s8, COIR_FRAME_S1+56(sp)
  ld s9, COIR_FRAME_S1+64(sp)
  ld s10, COIR_FRAME_S1+72(sp)
  ld s11, COIR_FRAME_S1+80(sp)
#ifdef __riscv_float_abi_double
  fld fs0, COIR_FRAME_FS0(sp)
  fld fs1, COIR_FRAME_FS0+8(sp)
  fld fs2, COIR_FRAME_FS0+16(sp)
  fld fs3, COIR_FRAME_FS0+24(sp)
  fld fs4, COIR_FRAME_FS0+32(sp)
  fld fs5, COIR_FRAME_FS0+40(sp)
  fld fs6, COIR_FRAME_FS0+48(sp)
  fld fs7, COIR_FRAME_FS0+56(sp)
  fld fs8, COIR_FRAME_FS0+64(sp)
  fld fs9, COIR_FRAME_FS0+72(sp)
  fld fs10, COIR_FRAME_FS0+80(sp)
  fld fs11, COIR_FRAME_FS0+88(sp)
#endif
  .cfi_remember_state
  addi sp, sp, COIR_FRAME_SIZE
  .cfi_def_cfa_offset 0
  .cfi_restore ra
  .cfi_restore s0
  .cfi_restore s1
  .cfi_restore s2
  .cfi_restore s3
  .cfi_restore s4
  .cfi_restore s5
  .cfi_restore s6
  .cfi_restore s7
  .cfi_restore s8
  .cfi_restore s9
  .cfi_restore s10
  .cfi_restore s11
#ifdef __riscv_float_abi_double
  .cfi_restore fs0
  .cfi_restore fs1
  .cfi_restore fs2
  .cfi_restore fs3
  .cfi_restore fs4
  .cfi_restore fs5
  .cfi_restore fs6
  .cfi_restore fs7
  .cfi_restore fs8
  .cfi_restore fs9
  .cfi_restore fs10
  .cfi_restore fs11
#endif
  mv a0, a2
  ret
  .cfi_restore_state
#ifdef __riscv_flen
.Lother_rounding:
  fsrm t1
  j .Lrounding_set
#endif
  .cfi_endproc
  .size coir_switch, .-coir_switch

// The first switch to a context arrives here: sp = the stack's top, a0 = the message, s1 = the entry, s2 = its
// argument, s0 = 0. An undefined return address tells unwinders that nothing called this. The nop is for them too: they
// look up a caller by the byte before its pc, which for a context that never ran is the byte before
// coir_context_arrive.

  .p2align 4
  .type coir_context_start, @function
coir_context_start:
  .cfi_startproc
  .cfi_undefined ra
  nop
  .globl coir_context_arrive
  .hidden coir_context_arrive
coir_context_arrive:
  mv a1, s2
  jalr s1
  ebreak  // the entry returned
  .cfi_endproc
  .size coir_context_start, .-coir_context_start

// void* coir_call_on(void* stack_top, void* (*fn)(void*), void* argument)
//
// Entry  a0 = the other stack's top, a1 = the function, a2 = its argument.
//
// The frame is an ordinary one with s0 as frame pointer; from it the CFA is told, so the stacks may lie anywhere. It is
// marked as a signal frame because gdb takes a caller at a lower address than its callee for a corrupt stack, and makes
// an exception for these.

  .p2align 4
  .globl coir_call_on
  .hidden coir_call_on
  .type coir_call_on, @function
coir_call_on:
  .cfi_startproc
  .cfi_signal_frame
  addi sp, sp, -16
  .cfi_def_cfa_offset 16
  sd ra, 8(sp)
  .cfi_offset ra, -8
  sd s0, 0(sp)
  .cfi_offset s0, -16
  addi s0, sp, 16
  .cfi_def_cfa s0, 0
  andi sp, a0, -16
  mv a0, a2
  jalr a1
  addi sp, s0, -16
  .cfi_def_cfa sp, 16
  ld ra, 8(sp)
  ld s0, 0(sp)
  addi sp, sp, 16
  .cfi_def_cfa_offset 0
  .cfi_restore ra
  .cfi_restore s0
  ret
  .cfi_endproc
  .size coir_call_on, .-coir_call_on

  .section .note.GNU-stack, "", @progbits
