"""Evaluates expressions such as ``(total + missing) * segment_bytes`` on captures from a log."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

Amount = int | float

_WHOLE_NUMBER = re.compile(r"\d{1,18}")
_OPERATORS: Mapping[type[ast.operator], Callable[[Amount, Amount], Amount]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
}
_NOT_COMPUTED = '"{}" is not a sum, difference, or product of captures'


def capture_names(expression: str) -> tuple[str, ...]:
    """The names in a sum, difference, or product of captures; raises ``ValueError`` otherwise."""
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise ValueError(_NOT_COMPUTED.format(expression)) from error
    names = []
    for node in ast.walk(tree.body):
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, ast.operator) and type(node) not in _OPERATORS:
            raise ValueError(f'"{expression}" has an operator other than + - *')
        elif not isinstance(node, ast.BinOp | ast.expr_context | ast.operator):
            raise ValueError(_NOT_COMPUTED.format(expression))
    return tuple(names)


def evaluate(expression: str, captures: Mapping[str, str]) -> Amount | None:
    """The result of an expression; ``None`` if a capture is missing or is not a whole number.

    Numbers of more than 18 digits count as missing.
    """
    return _evaluate(ast.parse(expression, mode="eval").body, captures)


def _evaluate(node: ast.expr, captures: Mapping[str, str]) -> Amount | None:
    if isinstance(node, ast.Name):
        text = captures.get(node.id, "").strip()
        return int(text) if _WHOLE_NUMBER.fullmatch(text) else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _evaluate(node.left, captures), _evaluate(node.right, captures)
    if left is None or right is None:
        return None
    return _OPERATORS[type(node.op)](left, right)
