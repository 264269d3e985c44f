// void abi_probe(void** save_sp, void* next_sp, const uint64_t* fill, uint64_t* seen)
//
// Fills every callee-saved register from `fill`, switches, and when switched back to leaves what it finds in `seen`.
// The order is that of kRegisters in context_abi.h.

  .text
  .globl abi_probe
  .type abi_probe, @function
abi_probe:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  sub $24, %rsp
  mov %rcx, (%rsp)
  stmxcsr 8(%rsp)
  fnstcw 16(%rsp)

  mov 0(%rdx), %rbx
  mov 8(%rdx), %rbp
  mov 16(%rdx), %r12
  mov 24(%rdx), %r13
  mov 32(%rdx), %r14
  mov 40(%rdx), %r15
  ldmxcsr 48(%rdx)
  fldcw 56(%rdx)
  call coir_switch
  mov (%rsp), %rcx
  mov %rbx, 0(%rcx)
  mov %rbp, 8(%rcx)
  mov %r12, 16(%rcx)
  mov %r13, 24(%rcx)
  mov %r14, 32(%rcx)
  mov %r15, 40(%rcx)
  stmxcsr 48(%rcx)
  fnstcw 56(%rcx)

  ldmxcsr 8(%rsp)
  fldcw 16(%rsp)
  add $24, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
  .size abi_probe, .-abi_probe

  .section .note.GNU-stack, "", @progbits
