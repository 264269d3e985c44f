// The context switch on x86_64. port/arch/riscv64/switch.S explains the steps and the unwind information; here is
// what differs.

#include <coir/port/arch/x86_64.h>

// void* coir_switch(void** save_sp, void* next_sp, void* message)
//
// Entry  rdi = where to leave this context's stack pointer, rsi = the stack pointer to take up, rdx = the message.
// Exit   rax = the message.
// Frame  sp +0    mxcsr, +4 x87 control word
//           +8    r12 r13 r14 r15 rbx
//           +48   rbp
//           +56   the return address, pushed by the call
//           +64   the caller's rsp, which is the CFA
//
// The control words are callee-saved by the ABI. stmxcsr is the dearest instruction here, and reading back what it wrote
// is dearer than loading what may already be there; with the x87 word it is the other way round. So mxcsr is loaded always
// and the x87 word only when it differs. (Zen 5, a switch in ns: as is 4.8, both compared 6.6, both loaded 5.0.)
//
// Leaving is decided by where the other context parked. If by the same call, the processor's stack of return addresses
// has the right one on top, and also the ones below it are right when both came the same way: ret. If not, ret would
// mispredict, while an indirect jump learns its target. (Two contexts switching in one place: ret 5.5 ns, jump 20 ns,
// since each later return of the callers mispredicts too. In two places: ret 16 ns, jump 4.8 ns.)

  .text
  .p2align 6
  .globl coir_switch
  .hidden coir_switch
  .type coir_switch, @function
coir_switch:
  .cfi_startproc
  mov (%rsp), %r8                      // where this context goes on
  mov COIR_FRAME_RIP(%rsi), %rcx       // where the other does
  lea -COIR_FRAME_RIP(%rsp), %rsp
  .cfi_def_cfa_offset COIR_FRAME_SIZE
  stmxcsr COIR_FRAME_MXCSR(%rsp)
  fnstcw COIR_FRAME_X87(%rsp)
  mov %r12, COIR_FRAME_R12(%rsp)
  mov %r13, COIR_FRAME_R13(%rsp)
  mov %r14, COIR_FRAME_R14(%rsp)
  mov %r15, COIR_FRAME_R15(%rsp)
  mov %rbx, COIR_FRAME_RBX(%rsp)
  mov %rbp, COIR_FRAME_RBP(%rsp)
  .cfi_rel_offset r12, COIR_FRAME_R12
  .cfi_rel_offset r13, COIR_FRAME_R13
  .cfi_rel_offset r14, COIR_FRAME_R14
  .cfi_rel_offset r15, COIR_FRAME_R15
  .cfi_rel_offset rbx, COIR_FRAME_RBX
  .cfi_rel_offset rbp, COIR_FRAME_RBP
  movzwl COIR_FRAME_X87(%rsp), %r9d

  mov %rsp, (%rdi)
  mov %rsi, %rsp
  .globl coir_switch_parked
  .hidden coir_switch_parked
coir_switch_parked:

  ldmxcsr COIR_FRAME_MXCSR(%rsp)
  cmp COIR_FRAME_X87(%rsp), %r9w
  jne .Lother_x87
.Lx87_set:
  mov COIR_FRAME_R12(%rsp), %r12
  mov COIR_FRAME_R13(%rsp), %r13
  mov COIR_FRAME_R14(%rsp), %r14
  mov COIR_FRAME_R15(%rsp), %r15
  mov COIR_FRAME_RBX(%rsp), %rbx
  mov COIR_FRAME_RBP(%rsp), %rbp
  mov %rdx, %rax
  cmp %rcx, %r8
  jne .Lother_place
  .cfi_remember_state
  lea COIR_FRAME_RIP(%rsp), %rsp
  .cfi_def_cfa_offset 8
  .cfi_restore r12
  .cfi_restore r13
  .cfi_restore r14
  .cfi_restore r15
  .cfi_restore rbx
  .cfi_restore rbp
  ret
  .cfi_restore_state
.Lother_place:
  .cfi_remember_state
  lea COIR_FRAME_SIZE(%rsp), %rsp
  .cfi_def_cfa_offset 0
  .cfi_register rip, rcx
  .cfi_restore r12
  .cfi_restore r13
  .cfi_restore r14
  .cfi_restore r15
  .cfi_restore rbx
  .cfi_restore rbp
  jmp *%rcx
  .cfi_restore_state
.Lother_x87:
  fldcw COIR_FRAME_X87(%rsp)
  jmp .Lx87_set
  .cfi_endproc
  .size coir_switch, .-coir_switch

// rax = the message, r12 = the entry, r13 = its argument, rbp = 0.

  .p2align 4
  .type coir_context_start, @function
coir_context_start:
  .cfi_startproc
  .cfi_undefined rip
  nop
  .globl coir_context_arrive
  .hidden coir_context_arrive
coir_context_arrive:
  mov %rax, %rdi
  mov %r13, %rsi
  call *%r12
  ud2  // the entry returned
  .cfi_endproc
  .size coir_context_start, .-coir_context_start

// void* coir_call_on(void* stack_top, void* (*fn)(void*), void* argument)
//
// Entry  rdi = the other stack's top, rsi = the function, rdx = its argument.

  .p2align 4
  .globl coir_call_on
  .hidden coir_call_on
  .type coir_call_on, @function
coir_call_on:
  .cfi_startproc
  .cfi_signal_frame
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register rbp
  and $-16, %rdi
  mov %rdi, %rsp
  mov %rdx, %rdi
  call *%rsi
  leave
  .cfi_def_cfa rsp, 8
  .cfi_restore rbp
  ret
  .cfi_endproc
  .size coir_call_on, .-coir_call_on

  .section .note.GNU-stack, "", @progbits
