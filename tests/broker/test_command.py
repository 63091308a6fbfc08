"""The command of an installation."""

from __future__ import annotations

import sys

import pytest

from broker.command import main


def test_an_unknown_word_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kafka-broker-python", "nosuch", "--config", "a"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("kafka-broker-python: there is no 'nosuch'; there are: delivery, ")
    assert said.count("\n") == 1
