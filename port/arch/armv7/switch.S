// The context switch on armv7. port/arch/riscv64/switch.S explains the steps and the unwind information; here is what
// differs.

#include <coir/port/arch/armv7.h>

// void* coir_switch(void** save_sp, void* next_sp, void* message)
//
// Entry  r0 = where to leave this context's stack pointer, r1 = the stack pointer to take up, r2 = the message.
// Exit   r0 = the message.
// Frame  sp +0    r4 .. r11      r7 (Thumb state) or r11 (ARM state) is the frame pointer
//           +32   lr             where the parked context goes on; bit 0 tells in which state
//           +36   fpscr          its control bits: rounding, flush-to-zero, default NaN, traps
//           +40   d8 .. d15
//           +112                 the caller's sp, which is the CFA
//
// These functions are in the state that the compiler was asked for, and callers in either state reach them: the linker
// makes bl a blx, and every way out (bx, blx, a pop of pc) takes the state from bit 0. r9 is a callee-saved register on
// Linux.
//
// AAPCS calls the control bits of fpscr global state that only functions made for it may change, and the switch is none
// of these: they are kept, and written only where the two contexts differ. Writing them clears the status flags, which
// are nobody's across a call.
//
// The CPU's own table of unwind information (.ARM.exidx) says of each function that nothing unwinds through it. Debuggers
// read .eh_frame: assemblers leave the mark of a signal frame out of .debug_frame, which is what C++ has here.

  .syntax unified
  .cfi_sections .eh_frame

  .text
  .p2align 4
  .globl coir_switch
  .hidden coir_switch
  .type coir_switch, %function
coir_switch:
  .fnstart
  .cfi_startproc
  sub sp, sp, #COIR_FRAME_SIZE
  .cfi_def_cfa_offset COIR_FRAME_SIZE
  vmrs r3, fpscr
  bic r3, r3, #0xf8000000  // the flags of the latest comparison, and of saturation
  bic r3, r3, #0x9f        // what has happened since they were cleared
  add r12, sp, #COIR_FRAME_D8
  stm sp, {r4-r11, lr}
  str r3, [sp, #COIR_FRAME_FPSCR]
  vstm r12, {d8-d15}
  .cfi_rel_offset r4, COIR_FRAME_R4
  .cfi_rel_offset r5, COIR_FRAME_R4+4
  .cfi_rel_offset r6, COIR_FRAME_R4+8
  .cfi_rel_offset r7, COIR_FRAME_R4+12
  .cfi_rel_offset r8, COIR_FRAME_R4+16
  .cfi_rel_offset r9, COIR_FRAME_R4+20
  .cfi_rel_offset r10, COIR_FRAME_R4+24
  .cfi_rel_offset r11, COIR_FRAME_R4+28
  .cfi_rel_offset lr, COIR_FRAME_LR
  .cfi_rel_offset d8, COIR_FRAME_D8
  .cfi_rel_offset d9, COIR_FRAME_D8+8
  .cfi_rel_offset d10, COIR_FRAME_D8+16
  .cfi_rel_offset d11, COIR_FRAME_D8+24
  .cfi_rel_offset d12, COIR_FRAME_D8+32
  .cfi_rel_offset d13, COIR_FRAME_D8+40
  .cfi_rel_offset d14, COIR_FRAME_D8+48
  .cfi_rel_offset d15, COIR_FRAME_D8+56

  str sp, [r0]
  mov sp, r1
  .globl coir_switch_parked
  .hidden coir_switch_parked
  .type coir_switch_parked, %function
coir_switch_parked:

  ldr r12, [sp, #COIR_FRAME_FPSCR]
  add r1, sp, #COIR_FRAME_D8
  cmp r3, r12
  bne .Lother_fpscr
.Lfpscr_set:
  vldm r1, {d8-d15}
  ldm sp, {r4-r11, lr}
  .cfi_remember_state
  add sp, sp, #COIR_FRAME_SIZE
  .cfi_def_cfa_offset 0
  .cfi_restore r4
  .cfi_restore r5
  .cfi_restore r6
  .cfi_restore r7
  .cfi_restore r8
  .cfi_restore r9
  .cfi_restore r10
  .cfi_restore r11
  .cfi_restore lr
  .cfi_restore d8
  .cfi_restore d9
  .cfi_restore d10
  .cfi_restore d11
  .cfi_restore d12
  .cfi_restore d13
  .cfi_restore d14
  .cfi_restore d15
  mov r0, r2
  bx lr
  .cfi_restore_state
.Lother_fpscr:
  vmsr fpscr, r12
  b .Lfpscr_set
  .cfi_endproc
  .cantunwind
  .fnend
  .size coir_switch, .-coir_switch

// r0 = the message, r4 = the entry, r5 = its argument, r7 = r11 = 0. lr is made 0, as at the start of a program.

  .p2align 4
  .type coir_context_start, %function
coir_context_start:
  .fnstart
  .cfi_startproc
  .cfi_undefined lr
  nop
  .globl coir_context_arrive
  .hidden coir_context_arrive
  .type coir_context_arrive, %function
coir_context_arrive:
  mov r1, r5
  mov lr, #0
  blx r4
  udf #0  // the entry returned
  .cfi_endproc
  .cantunwind
  .fnend
  .size coir_context_start, .-coir_context_start

// void* coir_call_on(void* stack_top, void* (*fn)(void*), void* argument)
//
// Entry  r0 = the other stack's top, r1 = the function, r2 = its argument.

#ifdef __thumb__
#define FRAME_POINTER r7
#else
#define FRAME_POINTER r11
#endif

  .p2align 4
  .globl coir_call_on
  .hidden coir_call_on
  .type coir_call_on, %function
coir_call_on:
  .fnstart
  .cfi_startproc
  .cfi_signal_frame
  push {FRAME_POINTER, lr}
  .cfi_def_cfa_offset 8
  .cfi_offset FRAME_POINTER, -8
  .cfi_offset lr, -4
  mov FRAME_POINTER, sp
  .cfi_def_cfa_register FRAME_POINTER
  bic r3, r0, #15
  mov sp, r3
  mov r0, r2
  blx r1
  mov sp, FRAME_POINTER
  .cfi_def_cfa_register sp
  pop {FRAME_POINTER, pc}
  .cfi_endproc
  .cantunwind
  .fnend
  .size coir_call_on, .-coir_call_on

  .section .note.GNU-stack, "", %progbits
