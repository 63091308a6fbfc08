"""The list of the first voters."""

from __future__ import annotations

import pytest

from controller.bootstrap.errors import BootstrapError
from controller.bootstrap.voters import parse_voters, voters_record
from protocol.uuids import from_base64

ID = "Wd5U2HhR-pqiYcbCZ0UuEA"
OTHER = "JEXY6aqzQY-32P5TStzaFg"


def test_voters_are_in_the_order_of_their_ids() -> None:
    voters = parse_voters(f" 2@b.example:9094:{OTHER},1@[::1]:9093:{ID}, ")

    assert [str(one) for one in voters] == [f"1@[::1]:9093:{ID}", f"2@b.example:9094:{OTHER}"]
    assert voters[0].directory_id == from_base64(ID)


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("a.example", "a.example"),
        ("[::1]", "0:0:0:0:0:0:0:1"),
        ("[::ffff:10.0.0.1]", "10.0.0.1"),
        ("", "localhost"),
    ],
)
def test_host_is_written_as_java_writes_it(host: str, written: str) -> None:
    record = voters_record(parse_voters(f"1@{host}:9093:{ID}"), "controller")

    (endpoint,) = record.voters[0].endpoints
    assert (endpoint.name, endpoint.host, endpoint.port) == ("CONTROLLER", written, 9093)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "at least one voter"),
        (",", "at least one voter"),
        ("1@a:9093", r"written id@host:port:directory-id"),
        (f"1@[::1:9093:{ID}", r"written id@host:port:directory-id"),
        (f"-1@a:9093:{ID}", "'-1' is not a number from 0 to 2147483647"),
        (f"1@a:65536:{ID}", "'65536' is not a number from 0 to 65535"),
        ("1@a:9093:short", "not 22 characters of base64"),
        (f"1@a:9093:{ID}=", "not 22 characters of base64"),
        ("1@a:9093:" + "A" * 21 + "Q", "is reserved"),
        (f"1@a:9093:{ID},1@b:9093:{OTHER}", "node 1 is there more than once"),
    ],
)
def test_malformed_list_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(BootstrapError, match=reason):
        parse_voters(text)
