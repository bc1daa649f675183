"""The engine that hands sources to Julia as they are: KernelAbstractions.jl through juliacall.

`installation` finds Julia, `bridge` starts it and alone knows juliacall, `owner` is the thread that may call it,
`runtime.jl` is all that runs inside, `builtin` makes a Julia function a Python one, `launcher` and `engine` are the
contract of `jlkern.engines.base`.
"""
