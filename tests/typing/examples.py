"""What type checkers must make of jlkern: the expected type follows `reveal_type`, `# error` marks what is wrong.

Read by `test_typing.py`, never run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import reveal_type

import jlkern

Vector = npt.NDArray[np.float32]
y: Vector = np.zeros(3, np.float32)
x: Vector = np.ones(3, np.float32)


@jlkern.kernel
def plain(y: Vector, a: np.float32 | float, x: Vector) -> None:
    """@kernel function plain!(y, a, @Const(x)) end"""


@jlkern.kernel(tune={"block": [64, 128]}, restrictions=["block > 64"], effort="full")
def tuned(y: Vector, a: float = 1.0, *, x: Vector) -> None:
    """@kernel function tuned!(y, a, @Const(x)) end"""


class Holder:
    @staticmethod
    @jlkern.kernel
    def held(y: Vector) -> None:
        """@kernel function held!(y) end"""


loose = jlkern.from_source("@kernel function f!(y) end", workgroup=None)
from_file = jlkern.from_source(Path("kernel.jl"))

reveal_type(plain(y, 2.0, x))  # expect: None
reveal_type(plain(y, a=2.0, x=x))  # expect: None
reveal_type(plain(y, 2.0, x, ndrange=4))  # expect: None
reveal_type(plain(y, 2.0, x, ndrange=(2, 2), config={"block": 64}))  # expect: None
reveal_type(tuned(y, x=x))  # expect: None
reveal_type(Holder.held(y))  # expect: None
reveal_type(loose(y, anything=3))  # expect: None
reveal_type(plain.tune(y, 2.0, x))  # expect: jlkern.tuning.task.TuneResult
reveal_type(plain.tune(y, 2.0, x, effort="full"))  # expect: jlkern.tuning.task.TuneResult
reveal_type(plain.tune(y, 2.0, x).best.as_dict())  # expect: dict
reveal_type(plain.config_for(y, 2.0, x))  # expect: jlkern.space.Config | None
reveal_type(plain.bind(y, 2.0, x))  # expect: jlkern.kernel.Bound
reveal_type(plain.bind(y, 2.0, x)())  # expect: None
reveal_type(plain.explain(y, 2.0, x))  # expect: jlkern.explain.Explanation
reveal_type(plain.lower(y, 2.0, x, config={"block": 64}))  # expect: str
reveal_type(plain.source)  # expect: str
reveal_type(jlkern.Array("float32", 3))  # expect: jlkern.signature.Array
reveal_type(jlkern.Val(3))  # expect: jlkern.signature.Val
reveal_type(jlkern.precompile(plain, tune=True))  # expect: list[jlkern.precompile.Precompiled]

with jlkern.frozen() as misses:
    reveal_type(misses)  # expect: list[jlkern.policy.Miss]

tuned(x=x)  # error
plain("text", 2.0, x)  # error
plain(y, 2.0, x, 3)  # error
plain.bind(y)  # error
plain.explain(y, 2.0)  # error
plain.tune()  # fine: any arguments, where settings may be among them
jlkern.kernel(tun={"block": [1]})  # error
jlkern.kernel(effort="some")  # error
anything: Any = loose
