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
// Differently from the reference, it saves into the red zone below rsp, which signal handlers leave alone, and restores
// straight from the other frame; rsp moves once. Until then unwinding shows the context left, from then on the one
// taken up.
//
// The control words are callee-saved by the ABI. stmxcsr is the dearest instruction here, and reading back what it
// wrote is dearer than loading what may already be there; with the x87 word it is the other way round. So mxcsr is
// loaded always and the x87 word only where the two contexts differ. (Zen 5, a switch in ns: as is 4.4, both compared
// 6.6, both loaded 4.7; without mxcsr 3.0.)
//
// How to leave depends on where the other context parked. If by the same call, the processor's stack of return
// addresses has the right one on top, and those below it are right as far as both came the same way: ret. If not, ret
// would be mispredicted, while an indirect jump learns its target. (64 contexts in turn, two calls deep: ret 5.4 ns,
// jump 20 ns, since each later return of the callers is mispredicted too. Two that call from different places: ret 16
// ns, jump 4.4 ns.)

  .text
  .p2align 6
  .globl coir_switch
  .hidden coir_switch
  .type coir_switch, @function
coir_switch:
  .cfi_startproc
  mov (%rsp), %r8  // where this context goes on
  stmxcsr COIR_FRAME_MXCSR-COIR_FRAME_RIP(%rsp)
  fnstcw COIR_FRAME_X87-COIR_FRAME_RIP(%rsp)
  mov %r12, COIR_FRAME_R12-COIR_FRAME_RIP(%rsp)
  mov %r13, COIR_FRAME_R13-COIR_FRAME_RIP(%rsp)
  mov %r14, COIR_FRAME_R14-COIR_FRAME_RIP(%rsp)
  mov %r15, COIR_FRAME_R15-COIR_FRAME_RIP(%rsp)
  mov %rbx, COIR_FRAME_RBX-COIR_FRAME_RIP(%rsp)
  mov %rbp, COIR_FRAME_RBP-COIR_FRAME_RIP(%rsp)
  .cfi_offset r12, COIR_FRAME_R12-COIR_FRAME_SIZE
  .cfi_offset r13, COIR_FRAME_R13-COIR_FRAME_SIZE
  .cfi_offset r14, COIR_FRAME_R14-COIR_FRAME_SIZE
  .cfi_offset r15, COIR_FRAME_R15-COIR_FRAME_SIZE
  .cfi_offset rbx, COIR_FRAME_RBX-COIR_FRAME_SIZE
  .cfi_offset rbp, COIR_FRAME_RBP-COIR_FRAME_SIZE
  movzwl COIR_FRAME_X87-COIR_FRAME_RIP(%rsp), %r9d
  lea -COIR_FRAME_RIP(%rsp), %rax
  mov %rax, (%rdi)

  ldmxcsr COIR_FRAME_MXCSR(%rsi)
  cmp COIR_FRAME_X87(%rsi), %r9w
  jne .Lother_x87
.Lx87_set:
  mov COIR_FRAME_R12(%rsi), %r12
  mov COIR_FRAME_R13(%rsi), %r13
  mov COIR_FRAME_R14(%rsi), %r14
  mov COIR_FRAME_R15(%rsi), %r15
  mov COIR_FRAME_RBX(%rsi), %rbx
  mov COIR_FRAME_RBP(%rsi), %rbp
  mov %rdx, %rax
  cmp COIR_FRAME_RIP(%rsi), %r8
  jne .Lother_place
  .cfi_remember_state
  lea COIR_FRAME_RIP(%rsi), %rsp
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
  lea COIR_FRAME_SIZE(%rsi), %rsp
  .cfi_def_cfa_offset 0
  .cfi_restore r12
  .cfi_restore r13
  .cfi_restore r14
  .cfi_restore r15
  .cfi_restore rbx
  .cfi_restore rbp
  jmp *COIR_FRAME_RIP(%rsi)
  .cfi_restore_state
.Lother_x87:
  fldcw COIR_FRAME_X87(%rsi)
  jmp .Lx87_set

  .cfi_def_cfa_offset COIR_FRAME_SIZE
  .globl coir_switch_parked
  .hidden coir_switch_parked
coir_switch_parked:  // never executed: there is no instruction here at which rsp points to a frame
  ud2
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
