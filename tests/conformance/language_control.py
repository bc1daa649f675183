"""Control flow: branches, loops, scopes, short circuits, variables of several types."""

from __future__ import annotations

import numpy as np

from .language import XF, XI, XS, elementwise

elementwise("chain", "r = -1 < v <= 1 ? v : 2v^2", XS)
elementwise(
    "elseif",
    """
    if v < -1
     r = 1.0
    elseif v < 0
     r = 2.0
    elseif v > 2
     r = 3.0
    else
     r = v
    end
    """,
    XS,
)
elementwise("ifvalue", "r = if v > 0; v; else; -v; end", XS)
elementwise(
    "whilebreak",
    """
    r = 0
    k = 0
    while true
      k += 1
      k > 10 && break
      k % 2 == 0 && continue
      r += k * v
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "forstep",
    """
    r = 0
    for k in 10:-3:v
     r += k
    end
    for k = 1:2:9
     r -= k
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "multi_break",
    """
    r = 0
    for a in 1:5, b in 1:5
      a * b > 12 && break
      r += a + b * v
    end
    """,
    XI,
    np.int64,
)
elementwise("ternchain", "r = v > 2 ? 1 : v > 1 ? 2 : v > 0 ? 3 : 4", XS, np.int64)
elementwise(
    "let",
    """
    r = let a = v, b = a + 1
      a * b
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "do",
    """
    t = ntuple(3) do k
      k + v
    end
    r = prod(t)
    """,
    XI,
    np.int64,
)
elementwise(
    "opassign",
    """
    r = v
    r -= 1
    r *= 2
    r ÷= 3
    r ⊻= 5
    r <<= 2
    r |= 1
    r &= 0xff
    r ^= 2
    """,
    XI,
    np.int64,
)
elementwise(
    "swap",
    """
    a, b = v, 2v
    a, b = b, a
    a, b = a + b, a - b
    r = 10a + b
    """,
    XS,
)
elementwise(
    "fib",
    """
    a, b = 0, 1
    for _ in 1:abs(v)
      a, b = b, a + b
    end
    r = a
    """,
    XI,
    np.int64,
)
elementwise(
    "cplxloop",
    """
    z = complex(0.0, 0.0)
    c = complex(v, 0.5)
    k = 0
    while k < 20 && abs2(z) < 4
      z = z^2 + c
      k += 1
    end
    r = k
    """,
    XS,
    np.int64,
)
elementwise(
    "newton",
    """
    a = abs(v) + 1
    x0 = a
    while abs(x0 * x0 - a) > 1e-12
      x0 = (x0 + a / x0) / 2
    end
    r = x0
    """,
    XS,
)
elementwise(
    "nestedloops",
    """
    r = 0
    for a in 1:4
      for b in a:4
        if b == 3
          continue
        end
        if a * b > 10
          break
        end
        r += a * b * v
      end
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "loopret",
    "r = f(v) + g(v)",
    XI,
    np.int64,
    before="""
    function f(x)
      for a in 1:5
        for b in 1:5
          a * b == x && return 100a + b
        end
      end
      return -1
    end
    function g(x)
      k = 0
      while true
        k += 1
        if k * k > abs(x)
          return k
        end
      end
    end
    """,
)
elementwise(
    "unroll",
    """
    r = 0
    @unroll for k in 1:4
      r += k * v
    end
    @unroll 4 for k in 1:4
      r += k
    end
    @simd for k in 1:3
      r += k
    end
    """,
    XI,
    np.int64,
    before="using KernelAbstractions.Extras: @unroll",
)
elementwise(
    "shortass",
    """
    r = 0
    v > 3 && (r = 1)
    v < -3 || (r += 2)
    """,
    XI,
    np.int64,
)
elementwise("chaincmp", "r = (0 < v ≤ 2 != 3) + (1 == 1 < v)", XS, np.int64)
elementwise(
    "local",
    """
    local q
    if v > 0
      q = 1
    else
      q = 2
    end
    r = q
    """,
    XS,
    np.int64,
)
elementwise("shortval", "r = (v > 0 && v < 2) || v == -3 ? 1 : 0", XS, np.int64)
elementwise("unionret", "r = f(v) * 2", XS, before="f(x) = x > 0 ? 1 : x")
elementwise(
    "nothingret",
    """
    q = f(v)
    r = q === nothing ? -1.0 : q
    """,
    XS,
    before="""
    function f(x)
     x > 0 && return x
     return nothing
    end
    """,
)
elementwise(
    "typechange",
    """
    a = v
    a = a + 0.5
    a = a > 0 ? 1 : 2
    r = a * v
    """,
    XI,
)
elementwise(
    "loopunion",
    """
    a = 1
    for k in 1:abs(v)
      a = a / 2
    end
    r = a
    """,
    XI,
)
elementwise(
    "unstable_if",
    """
    if v > 0
      t = 1
    else
      t = 2.5
    end
    r = t * v
    """,
    XS,
)
elementwise(
    "unstable_acc",
    """
    acc = 0
    for k in 1:3
      acc += v * k
    end
    r = acc / 2
    """,
    XF,
    np.float32,
)
elementwise("unstable_tern", "r = (v > 0 ? 1 : 0.5f0) * v", XF, np.float32)
elementwise(
    "typedlocal",
    """
    acc::Float32 = 0
    for k in 1:3
      acc += v
    end
    r = acc
    """,
    XS,
    np.float32,
)
elementwise(
    "whilecplx",
    """
    a, b = abs(v) + 1, 6
    while b != 0
      a, b = b, a % b
    end
    r = a
    """,
    XI,
    np.int64,
)
elementwise(
    "gcdlike",
    "r = gcd_(abs(v), 12)",
    XI,
    np.int64,
    before="""
    function gcd_(a, b)
     while b != 0
      t = b
      b = a % b
      a = t
     end
     a
    end
    """,
)
elementwise(
    "zip",
    """
    r = 0
    for (a, b) in zip((1, 2, 3), (v, 2v, 3v))
      r += a * b
    end
    for (k, q) in enumerate((v, v))
      r += k * q
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "tupleloop",
    """
    r = 0.0
    for q in (v, 2.0, 3.0)
      r = r * 2 + q
    end
    """,
    XS,
)
elementwise(
    "earlyreturn",
    "r = f(v)",
    XS,
    before="""
    function f(x)
      if x < -1
        return -1.0
      end
      y = x * 2
      for k in 1:10
        if y > k
          return Float64(k)
        end
        y += 0.25
      end
      x > 2 && return 7.0
      return y
    end
    """,
)
elementwise("precedence", "r = v & 3 == 1 ? 1 : v << 1 + 2 > 4 ? 2 : -v^2 + 2v^2 % 7", XI, np.int64)
