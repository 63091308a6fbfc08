"""The source that is generated is what the docstrings of its generators show."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from protocol import compiler, decoder_source, encoder_source
from protocol.fields import array, int16, int32, string
from protocol.schema import Coded, Struct

if TYPE_CHECKING:
    from types import ModuleType


def shown_in(module: ModuleType) -> str:
    """The indented block behind "version 9 becomes", without comments."""
    _, _, after = (module.__doc__ or "").partition("version 9 becomes")
    block = re.split(r"\n(?=\S)", after.partition("\n")[2])[0]
    return re.sub(r" +# .*", "", textwrap.dedent(block)).strip()


def test_the_worked_example_of_a_decoder_is_true() -> None:
    class Example(Coded, versions="0-9", flexible="9+"):
        class Topic(Struct):
            name: str = string()
            partitions: list[int] = array(int32)

        acks: int = int16()
        timeout_ms: int = int32()
        topics: list[Topic] = array(Topic)

    assert str(compiler.decoder_source(Example, 9)) == shown_in(decoder_source)


def test_the_worked_example_of_an_encoder_is_true() -> None:
    class Example(Coded, versions="0-9", flexible="9+"):
        class Topic(Struct):
            error_code: int = int16()
            name: str | None = string(nullable="0+")

        throttle_time_ms: int = int32()
        topics: list[Topic] = array(Topic)

    assert str(compiler.encoder_source(Example, 9)) == shown_in(encoder_source)
