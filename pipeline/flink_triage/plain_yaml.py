"""Loads YAML as plain values; limits its size and nesting, and rejects aliases."""

from __future__ import annotations

from typing import Any

import yaml

MAX_CHARS = 256 * 1024
MAX_DEPTH = 20


class _PlainLoader(yaml.SafeLoader):
    """A safe loader that rejects aliases, which can expand a small file to billions of values."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        if self.depth >= MAX_DEPTH:
            raise yaml.YAMLError(f"is nested deeper than {MAX_DEPTH}")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def load_plain_yaml(text: str) -> Any:
    """The value of a single document.

    Raises ``yaml.YAMLError`` if the document is invalid, too large, or nested too deeply, or if it
    contains aliases.
    """
    if len(text) > MAX_CHARS:
        raise yaml.YAMLError(f"has {len(text)} characters, allowed: {MAX_CHARS}")
    try:
        return yaml.load(text, Loader=_PlainLoader)
    except (ValueError, RecursionError) as error:
        # PyYAML raises these errors for an invalid date and for deeply nested brackets.
        raise yaml.YAMLError(str(error)) from None
