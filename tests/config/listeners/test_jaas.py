"""Reading `sasl.jaas.config`, and files of it."""

from __future__ import annotations

import pytest

from config.errors import ConfigError
from config.listeners.jaas import PLAIN_MODULE, LoginModule, parse_login_module, parse_sections


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('{} required username="alice" password="s;e=c ret";', ("alice", "s;e=c ret")),
        ("{} required\n  username='alice'\n  password='it\"s' ;", ("alice", 'it"s')),
        ('{} REQUIRED username=alice password="a\\"b\\\\c\\101";', ("alice", 'a"b\\cA')),
        (
            "{} sufficient // who?\n username=alice /* and */ password=x_1-2.3$;",
            ("alice", "x_1-2.3$"),
        ),
        ('{} optional username = "älice" password="";', ("älice", "")),
        ('{} required /\n username="of" the comment\nusername=a password="\\\n";', ("a", "\n")),
    ],
)
def test_options_are_read_as_java_reads_them(text: str, options: tuple[str, str]) -> None:
    module = parse_login_module(text.replace("{}", PLAIN_MODULE))

    assert module.class_name == PLAIN_MODULE
    assert (module.options["username"], module.options["password"]) == options


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not specified"),
        ("= required;", "Login module not specified"),
        ("a.b.C", "control flag not specified"),
        ('a.b.C "needed" password="secret";', "Invalid login module control flag"),
        ("a.b.C = secret;", "control flag is not available"),
        ('a.b.C required password="secret"', "semi-colon"),
        ("a.b.C required password=12345;", "Value not specified"),
        ('a.b.C required "secret";', "Value not specified"),
        ('a.b.C required password="secret; x=y;', "semi-colon"),
        ("a.b.C required x=secret; a.b.D required;", "2 login modules, should be 1"),
    ],
)
def test_an_invalid_login_module_is_refused_without_its_secret(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        parse_login_module(text)

    assert "secret" not in str(raised.value)


def test_a_login_module_does_not_show_its_secrets() -> None:
    module = parse_login_module('a.b.C required password="secret";')

    assert "secret" not in repr(module)


def test_sections_of_a_file_are_read() -> None:
    sections = parse_sections(
        """
        KafkaServer { a.b.C required user_alice="x"; a.b.D optional; };
        Client { a.b.E required username="z"; };
        """
    )

    assert sections == {
        "KafkaServer": [LoginModule("a.b.C", {"user_alice": "x"}), LoginModule("a.b.D", {})],
        "Client": [LoginModule("a.b.E", {"username": "z"})],
    }


@pytest.mark.parametrize(
    "text", ["KafkaServer", "A { a.b.C required; }", "A { a.b.C required;", "{"]
)
def test_a_damaged_file_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="JAAS"):
        parse_sections(text)
