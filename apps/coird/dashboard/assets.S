// The style and the script of the dashboard, compressed by gzip, as assets.h declares them.
  .section .rodata.coird_dashboard, "a", %progbits
  .globl coird_style, coird_style_end, coird_script, coird_script_end
coird_style:
  .incbin "style.css.gz"
coird_style_end:
coird_script:
  .incbin "script.js.gz"
coird_script_end:
  .section .note.GNU-stack, "", %progbits
