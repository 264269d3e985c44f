// void abi_probe(void** save_sp, void* next_sp, const uint64_t* fill, uint64_t* seen)
//
// Fills every callee-saved register from `fill`, switches, and when switched back to leaves what it finds in `seen`.
// The order is that of kRegisters in context_abi.h. Every second call switches from ARM state, the others from Thumb
// state: of two contexts in turn, each has a state of its own.

  .syntax unified
  .cpu cortex-a7
  .fpu neon-vfpv4

  .text
  .globl abi_probe
  .thumb
  .p2align 2
  .type abi_probe, %function
abi_probe:
  push {r3-r11, lr}
  vpush {d8-d15}
  vmrs r12, fpscr
  push {r3, r12}

  movw r12, :lower16:abi_calls
  movt r12, :upper16:abi_calls
  ldr r4, [r12]
  adds r4, r4, #1
  str r4, [r12]
  lsls r4, r4, #31
  ite pl
  adrpl r3, .Lswitch_in_arm_state
  adrmi r3, .Lswitch_in_thumb_state
  it mi
  orrmi r3, r3, #1

  ldr r12, [r2, #128]
  vmsr fpscr, r12
  add r12, r2, #64
  vldm r12, {d8-d15}
  ldr r4, [r2]
  ldr r5, [r2, #8]
  ldr r6, [r2, #16]
  ldr r7, [r2, #24]
  ldr r8, [r2, #32]
  ldr r9, [r2, #40]
  ldr r10, [r2, #48]
  ldr r11, [r2, #56]
  bx r3

  .p2align 2
.Lswitch_in_thumb_state:
  bl coir_switch
  b .Lseen

  .arm
  .p2align 2
.Lswitch_in_arm_state:
  bl coir_switch
  add r3, pc, #1
  bx r3
  .thumb
.Lseen:
  ldr r3, [sp]
  str r4, [r3]
  str r5, [r3, #8]
  str r6, [r3, #16]
  str r7, [r3, #24]
  str r8, [r3, #32]
  str r9, [r3, #40]
  str r10, [r3, #48]
  str r11, [r3, #56]
  add r12, r3, #64
  vstm r12, {d8-d15}
  vmrs r12, fpscr
  str r12, [r3, #128]

  pop {r3, r12}
  vmsr fpscr, r12
  vpop {d8-d15}
  pop {r3-r11, pc}
  .size abi_probe, .-abi_probe

  .bss
  .p2align 2
abi_calls:
  .zero 4

  .section .note.GNU-stack, "", %progbits
