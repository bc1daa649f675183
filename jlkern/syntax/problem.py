"""What the parser raises: a place in the source string and what is wrong there."""

from __future__ import annotations


class SyntaxProblem(Exception):
    """The source does not parse as Julia; `line` and `column` count from 1 in the source string.

    Parameters
    ----------
    line, column
        The place.
    message
        What is wrong, without the place.

    Examples
    --------
    >>> str(SyntaxProblem(2, 5, "unexpected `)`"))
    'unexpected `)` (line 2, column 5)'
    """

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(line, column, message)
        self.line = line
        self.column = column
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (line {self.line}, column {self.column})"


class KernelOptionProblem(SyntaxProblem):
    """`@kernel` was given an option that it does not know, or a value that is no literal Bool."""
