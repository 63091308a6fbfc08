"""The compiler's input in place of a source."""

from __future__ import annotations

import textwrap

import pytest

from compiled.source_text import UncompilableError, compilable


def text(body: str) -> str:
    return "from __future__ import annotations\n" + textwrap.dedent(body)


def test_ordinary_modules_stay_as_they_are() -> None:
    source = text(
        """
        if TYPE_CHECKING:
            from a.b import Thing

        class Ordinary:
            one: Thing

            def use(self, thing: Thing) -> None:
                local: Thing = thing
        """
    )

    assert compilable(source) == source


def test_annotations_of_named_tuples_are_quoted() -> None:
    source = text(
        """
        class Pair(NamedTuple):
            first: list[Thing] | None = None  # é
            second: int
        """
    )

    changed = compilable(source)

    assert '    first: "list[Thing] | None" = None  # é\n    second: "int"\n' in changed
    assert changed.count("\n") == source.count("\n")


def test_something_stands_for_names_that_dataclasses_have_for_type_checkers_only() -> None:
    source = text(
        """
        if TYPE_CHECKING:
            from collections.abc import Callable

            Run = Callable[[], None]

        @dataclass(frozen=True)
        class Job:
            run: Run
            call: Callable[[], None]
        """
    )

    first, rest = compilable(source).split("\n", 1)

    assert first.endswith("; globals().update(dict.fromkeys(['Callable', 'Run'], object))")
    assert rest == source.split("\n", 1)[1]


def test_dataclass_with_a_compiled_class_that_may_not_be_there_yet_is_refused() -> None:
    source = text(
        """
        if TYPE_CHECKING:
            from a.b import Thing

        @dataclass
        class Job:
            thing: Thing
        """
    )

    with pytest.raises(UncompilableError, match="line 8: a dataclass has a field of Thing"):
        compilable(source, frozenset({"a.b"}))
    assert "['Thing']" in compilable(source, frozenset({"a.c"}))


def test_reading_slots_is_refused_as_compiled_classes_have_none() -> None:
    with pytest.raises(UncompilableError, match="line 2: a compiled class has no __slots__"):
        compilable(text("names = Thing.__slots__\n"))


def test_coroutines_are_refused_as_finished_ones_cannot_be_closed() -> None:
    with pytest.raises(UncompilableError, match="line 2: a compiled coroutine"):
        compilable(text("async def wait() -> None: ...\n"))


def test_cached_properties_are_refused_as_they_would_be_computed_each_time() -> None:
    with pytest.raises(UncompilableError, match="line 2: a compiled class caches no property"):
        compilable(text("@cached_property\ndef size(self) -> int: ...\n"))
