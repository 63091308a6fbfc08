"""Command lines of `kafka-storage`, each with a property file and directories to run it on.

`{root}` in a text stands for the directory of one run. Directories are below it, and their names
are all that is stated of them in `found`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"
OTHER_CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qk"
ID_1: Final = "Wd5U2HhR-pqiYcbCZ0UuEA"
ID_2: Final = "JEXY6aqzQY-32P5TStzaFg"
ID_3: Final = "MvDxzVmcRsaTz33bUuRU6A"

PROTOCOLS: Final = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
COMMON: Final = {
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": PROTOCOLS,
    "log.dirs": "{root}/one",
}
STATIC: Final = MappingProxyType(
    {
        **COMMON,
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    }
)
CONTROLLER: Final = MappingProxyType(
    {
        **COMMON,
        "process.roles": "controller",
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    }
)
BROKER: Final = MappingProxyType(
    {
        **COMMON,
        "process.roles": "broker",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    }
)
TWO: Final = {"log.dirs": "{root}/two,{root}/one"}

V1: Final = f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n"
FORMATTED: Final = f"{V1}directory.id={ID_1}\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One command line on one set of directories."""

    name: str
    arguments: tuple[str, ...]
    base: Mapping[str, str] = field(default_factory=lambda: STATIC)
    changes: Mapping[str, str | None] = field(default_factory=dict)
    """Keys of the file that differ from those of `base`; None leaves one out."""
    found: Mapping[str, str | None] = field(default_factory=dict)
    """What is there before: `meta.properties` by directory, None for a directory without it."""

    @property
    def properties(self) -> dict[str, str]:
        """The keys of the property file."""
        merged = {**self.base, **self.changes}
        return {key: value for key, value in merged.items() if value is not None}


def formats(name: str, *arguments: str, **rest: object) -> Case:
    """A case of `format` with the file and the cluster id."""
    words = ("format", "-c", "{root}/server.properties", "-t", CLUSTER, *arguments)
    return Case(name, words, **rest)  # type: ignore[arg-type]


def informs(name: str, **rest: object) -> Case:
    """A case of `info`."""
    return Case(name, ("info", "-c", "{root}/server.properties"), **rest)  # type: ignore[arg-type]


QUORUMS: Final = (
    formats("static voters"),
    formats("static voters, controller alone", base=CONTROLLER, changes={
        "controller.quorum.voters": "1@127.0.0.1:9093", "controller.quorum.bootstrap.servers": None}),
    formats("static voters, broker alone", base=BROKER, changes={
        "controller.quorum.voters": "7@127.0.0.1:9093", "controller.quorum.bootstrap.servers": None}),
    formats("standalone", "-s", base=CONTROLLER),
    formats("standalone, combined", "--standalone", changes={"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}),
    formats("standalone on a broker", "-s", base=BROKER),
    formats("standalone with static voters", "-s"),
    formats("standalone, advertised", "-s", base=CONTROLLER, changes={"advertised.listeners": "CONTROLLER://controller.example:19093"}),
    formats("standalone, no host", "-s", base=CONTROLLER, changes={"listeners": "CONTROLLER://:9093"}),
    formats("standalone, IPv6", "-s", base=CONTROLLER, changes={"listeners": "CONTROLLER://[::1]:9093"}),
    formats("standalone, listener in lower case", "-s", base=CONTROLLER, changes={"listeners": "controller://127.0.0.1:9093"}),
    formats("standalone, two controller listeners", "-s", base=CONTROLLER, changes={
        "controller.listener.names": "SECOND,CONTROLLER", "listeners": "CONTROLLER://127.0.0.1:9093,SECOND://127.0.0.1:9094",
        "listener.security.protocol.map": PROTOCOLS + ",SECOND:PLAINTEXT"}),
    formats("standalone, every interface", "-s", base=CONTROLLER, changes={"listeners": "CONTROLLER://0.0.0.0:9093"}),
    formats("standalone, advertised every interface", "-s", base=CONTROLLER, changes={"advertised.listeners": "CONTROLLER://0.0.0.0:9093"}),
    formats("standalone, advertised for clients alone", "-s", changes={"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "127.0.0.1:9093", "advertised.listeners": "PLAINTEXT://a.example:9092"}),
    formats("standalone, advertised for both", "-s", changes={"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "127.0.0.1:9093", "advertised.listeners": "PLAINTEXT://a.example:9092,CONTROLLER://b.example:9093"}),
    formats("standalone, names in lower case", "-s", base=CONTROLLER, changes={"controller.listener.names": "controller", "listener.security.protocol.map": "controller:PLAINTEXT"}),
    formats("no initial controllers", "-N", base=CONTROLLER),
    formats("no initial controllers on a broker", "-N", base=BROKER),
    formats("no initial controllers with static voters", "-N"),
    formats("no flag on a broker", base=BROKER),
    formats("no flag on a controller", base=CONTROLLER),
    formats("initial controllers", "-I", f"1@127.0.0.1:9093:{ID_1}", base=CONTROLLER),
    formats("three initial controllers", "-I", f"3@c.example:9095:{ID_3},1@a.example:9093:{ID_1},2@b.example:9094:{ID_2}", base=CONTROLLER),
    formats("initial controllers without this one", "-I", f"2@b.example:9094:{ID_2}", base=CONTROLLER),
    formats("initial controllers with static voters", "-I", f"1@127.0.0.1:9093:{ID_1}"),
    formats("initial controllers on a broker", "-I", f"2@b.example:9094:{ID_2}", base=BROKER),
    formats("initial controllers, combined", "-I", f"1@127.0.0.1:9093:{ID_1}", changes={"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}),
    formats("initial controllers, IPv6", "-I", f" 1@[::1]:9093:{ID_1}, ", base=CONTROLLER),
    formats("initial controllers, name in brackets", "-I", f"1@[a.example]:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, mapped address", "-I", f"1@[::ffff:10.0.0.1]:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, signs", "-I", f"+1@a.example:+9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, id too large", "-I", f"2147483648@a.example:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, blanks", "-I", f"1@a.example:9093:{ID_1} , 2@b.example:9094:{ID_2}", base=CONTROLLER),
    formats("initial controllers, half padded directory", "-I", f"1@127.0.0.1:9093:{ID_1}=", base=CONTROLLER),
    formats("initial controllers, empty", "-I", "", base=CONTROLLER),
    formats("initial controllers, only commas", "-I", ",", base=CONTROLLER),
    formats("initial controllers, no id", "-I", f"127.0.0.1:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, empty id", "-I", f"@127.0.0.1:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, negative id", "-I", f"-1@127.0.0.1:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, a name for an id", "-I", f"one@127.0.0.1:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, no host", "-I", "1@", base=CONTROLLER),
    formats("initial controllers, empty host", "-I", f"1@:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, open bracket", "-I", f"1@[::1:9093:{ID_1}", base=CONTROLLER),
    formats("initial controllers, no port", "-I", "1@127.0.0.1", base=CONTROLLER),
    formats("initial controllers, port too large", "-I", f"1@127.0.0.1:65536:{ID_1}", base=CONTROLLER),
    formats("initial controllers, port a name", "-I", f"1@127.0.0.1:http:{ID_1}", base=CONTROLLER),
    formats("initial controllers, no directory", "-I", "1@127.0.0.1:9093", base=CONTROLLER),
    formats("initial controllers, bad directory", "-I", "1@127.0.0.1:9093:short", base=CONTROLLER),
    formats("initial controllers, long directory", "-I", f"1@127.0.0.1:9093:{ID_1}AAAA", base=CONTROLLER),
    formats("initial controllers, padded directory", "-I", f"1@127.0.0.1:9093:{ID_1}==", base=CONTROLLER),
    formats("initial controllers, reserved directory", "-I", "1@127.0.0.1:9093:AAAAAAAAAAAAAAAAAAAAAQ", base=CONTROLLER),
    formats("initial controllers, zero directory", "-I", "1@127.0.0.1:9093:AAAAAAAAAAAAAAAAAAAAAA", base=CONTROLLER),
    formats("initial controllers, one twice", "-I", f"1@a.example:9093:{ID_1},1@b.example:9093:{ID_2}", base=CONTROLLER),
    formats("initial controllers, one directory twice", "-I", f"1@a.example:9093:{ID_1},2@b.example:9093:{ID_1}", base=CONTROLLER),
    formats("voters in no brackets", "-I", f"1@::1:9093:{ID_1}", base=CONTROLLER),
    formats("two kinds of quorum", "-s", "-N", base=CONTROLLER),
)

FEATURES: Final = (
    *(formats(f"release {text}", "-r", text) for text in ("4.4-IV2", "4.4", "4.3.1", "4.2-IV0", "4.0-IV2", "3.9", "3.3-IV3", "3.3-IV2", "4.5-IV0", "4.5", "", "4", "4.4.", "bogus")),
    formats("metadata.version by feature", "-f", "metadata.version=30"),
    formats("metadata.version twice", "-f", "metadata.version=30", "-r", "4.3"),
    formats("metadata.version too old", "-f", "metadata.version=6"),
    formats("metadata.version not stable", "-f", "metadata.version=34"),
    formats("metadata.version unknown", "-f", "metadata.version=99"),
    formats("unstable features", changes={"unstable.feature.versions.enable": "true"}),
    formats("unstable release", "-r", "4.5-IV0", changes={"unstable.feature.versions.enable": "true"}),
    formats("unstable metadata.version", "-f", "metadata.version=34", changes={"unstable.feature.versions.enable": "true"}),
    formats("unstable release by its short name", "-r", "4.5", changes={"unstable.feature.versions.enable": "true"}),
    formats("features off", "-f", "group.version=0", "-f", "transaction.version=0", "--feature", "streams.version=0"),
    formats("a lower level", "-f", "transaction.version=1", "-f", "share.version=1"),
    formats("feature before its release", "-r", "3.9", "-f", "group.version=1"),
    formats("feature twice", "-f", "group.version=0", "-f", "group.version=1"),
    formats("unknown feature", "-f", "nosuch.version=1"),
    formats("test feature", "-f", "test.feature.version=1"),
    formats("unknown level", "-f", "group.version=2"),
    formats("negative level", "-f", "group.version=-1"),
    formats("no level", "-f", "group.version"),
    formats("empty level", "-f", "group.version="),
    formats("level a name", "-f", "group.version=one"),
    formats("level too large", "-f", "group.version=65537"),
    formats("level with sign and blanks", "-f", " group.version = +1 "),
    formats("dependency not met", "-r", "3.9", "-f", "eligible.leader.replicas.version=1"),
    formats("dependency met", "-r", "4.0-IV1", "-f", "eligible.leader.replicas.version=1"),
    formats("kraft.version 0", "-f", "kraft.version=0"),
    formats("kraft.version 1 with static voters", "-f", "kraft.version=1"),
    formats("kraft.version 1, standalone", "-f", "kraft.version=1", "-s", base=CONTROLLER),
    formats("kraft.version 0, standalone", "-f", "kraft.version=0", "-s", base=CONTROLLER),
    formats("kraft.version 0 on a broker", "-f", "kraft.version=0", base=BROKER),
    formats("kraft.version 2", "-f", "kraft.version=2", "-s", base=CONTROLLER),
    formats("standalone, release before kraft.version 1", "-s", "-r", "3.8", base=CONTROLLER),
)

_SALT: Final = 'salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E="'
_SALTED: Final = 'saltedpassword="mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE="'

SCRAM: Final = (
    formats("SCRAM", "-S", f"SCRAM-SHA-256=[name=alice,password=alice-secret,{_SALT}]"),
    formats("SCRAM, 512", "--add-scram", f"SCRAM-SHA-512=[name=alice,password=alice-secret,{_SALT},iterations=8192]"),
    formats("SCRAM, two", "-S", f"SCRAM-SHA-512=[name=zoe,password=z,{_SALT}]", "-S", f"SCRAM-SHA-256=[name=alice,password=a,{_SALT}]"),
    formats("SCRAM, drawn salt", "-S", "SCRAM-SHA-256=[name=alice,password=alice-secret]"),
    formats("SCRAM, one user twice", "-S", f"SCRAM-SHA-256=[name=alice,password=a,{_SALT}]", "-S", f"SCRAM-SHA-256=[name=alice,password=b,{_SALT}]"),
    formats("SCRAM, salted password", "-S", f"SCRAM-SHA-256=[name=alice,iterations=4096,{_SALT},{_SALTED}]"),
    formats("SCRAM, both passwords", "-S", f"SCRAM-SHA-256=[name=alice,password=x,{_SALT},{_SALTED}]"),
    formats("SCRAM, empty salted password", "-S", f"SCRAM-SHA-256=[name=alice,{_SALT},saltedpassword=]"),
    formats("SCRAM, empty argument", "-S", ""),
    formats("SCRAM, iterations with a sign", "-S", f"SCRAM-SHA-256=[name=alice,password=x,iterations=+5000,{_SALT}]"),
    formats("SCRAM, half padded salt", "-S", "SCRAM-SHA-256=[name=alice,password=x,salt=YQ=]"),
    formats("SCRAM, salted without salt", "-S", f"SCRAM-SHA-256=[name=alice,{_SALTED}]"),
    formats("SCRAM, salted password no base64", "-S", f'SCRAM-SHA-256=[name=alice,{_SALT},saltedpassword="!"]'),
    formats("SCRAM, quotes", "-S", f'  SCRAM-SHA-256=["name"=x,name="alice",password="a=b",{_SALT}]'),
    formats("SCRAM, quoted", "-S", f'  SCRAM-SHA-256=[name="alice",password="a=b",{_SALT}]  '),
    formats("SCRAM, one quote", "-S", f'SCRAM-SHA-256=[name=",password=",{_SALT}]'),
    formats("SCRAM, blanks", "-S", f"SCRAM-SHA-256=[name=alice, password=x,{_SALT}]"),
    formats("SCRAM, not ASCII", "-S", f"SCRAM-SHA-256=[name=älice,password=geheimß,{_SALT}]"),
    formats("SCRAM, comma at the end", "-S", f"SCRAM-SHA-256=[name=alice,password=x,{_SALT},]"),
    formats("SCRAM, two commas", "-S", f"SCRAM-SHA-256=[name=alice,,password=x,{_SALT}]"),
    formats("SCRAM, empty", "-S", "SCRAM-SHA-256=[]"),
    formats("SCRAM, empty name", "-S", f"SCRAM-SHA-256=[name=,password=x,{_SALT}]"),
    formats("SCRAM, empty password", "-S", f"SCRAM-SHA-256=[name=alice,password=,{_SALT}]"),
    formats("SCRAM, empty salt", "-S", "SCRAM-SHA-256=[name=alice,password=x,salt=]"),
    formats("SCRAM, unpadded salt", "-S", "SCRAM-SHA-256=[name=alice,password=x,salt=MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E]"),
    formats("SCRAM, salt no base64", "-S", "SCRAM-SHA-256=[name=alice,password=x,salt=a]"),
    formats("SCRAM, url-safe salt", "-S", "SCRAM-SHA-256=[name=alice,password=x,salt=__--]"),
    formats("SCRAM, no name", "-S", "SCRAM-SHA-256=[password=x]"),
    formats("SCRAM, no password", "-S", f"SCRAM-SHA-256=[name=alice,{_SALT}]"),
    formats("SCRAM, name twice", "-S", f"SCRAM-SHA-256=[name=alice,name=bob,password=x,{_SALT}]"),
    formats("SCRAM, unknown field", "-S", "SCRAM-SHA-256=[name=alice,password=x,nosuch=1]"),
    formats("SCRAM, unknown mechanism", "-S", "SCRAM-SHA-1=[name=alice,password=x]"),
    formats("SCRAM, mechanism in lower case", "-S", "scram-sha-256=[name=alice,password=x]"),
    formats("SCRAM, no equals sign", "-S", "SCRAM-SHA-256"),
    formats("SCRAM, field without equals sign", "-S", "SCRAM-SHA-256=[name]"),
    formats("SCRAM, no opening bracket", "-S", "SCRAM-SHA-256=name=alice,password=x]"),
    formats("SCRAM, no closing bracket", "-S", "SCRAM-SHA-256=[name=alice,password=x"),
    formats("SCRAM, too few iterations", "-S", "SCRAM-SHA-256=[name=alice,password=x,iterations=4095]"),
    formats("SCRAM, too many iterations", "-S", "SCRAM-SHA-256=[name=alice,password=x,iterations=16385]"),
    formats("SCRAM, most iterations", "-S", f"SCRAM-SHA-512=[name=alice,password=x,iterations=16384,{_SALT}]"),
    formats("SCRAM, iterations a name", "-S", "SCRAM-SHA-256=[name=alice,password=x,iterations=many]"),
    formats("SCRAM before its release", "-S", "SCRAM-SHA-256=[name=alice,password=x]", "-r", "3.5-IV1"),
    formats("SCRAM in its first release", "-S", f"SCRAM-SHA-256=[name=alice,password=x,{_SALT}]", "-r", "3.5"),
    formats("SCRAM on a broker", "-S", f"SCRAM-SHA-256=[name=alice,password=x,{_SALT}]", base=BROKER),
    formats("SCRAM, standalone", "-s", "-S", f"SCRAM-SHA-256=[name=alice,password=x,{_SALT}]", base=CONTROLLER),
)

DIRECTORIES: Final = (
    formats("a directory without the file", found={"one": None}),
    formats("formatted already", found={"one": FORMATTED}),
    formats("formatted already, ignored", "-g", found={"one": FORMATTED}),
    formats("two directories", changes=TWO),
    formats("two directories, standalone", "-s", base=CONTROLLER, changes=TWO),
    formats("two directories, initial controllers", "-I", f"1@a.example:9093:{ID_1}", base=CONTROLLER, changes=TWO),
    formats("metadata elsewhere", changes={"metadata.log.dir": "{root}/metadata"}),
    formats("metadata in the second", changes={**TWO, "metadata.log.dir": "{root}/one"}),
    formats("one of two formatted", changes=TWO, found={"one": FORMATTED}),
    formats("one of two formatted, ignored", "--ignore-formatted", changes=TWO, found={"one": FORMATTED}),
    formats("metadata directory formatted, ignored", "-g", changes=TWO, found={"two": FORMATTED}),
    formats("other cluster", found={"one": FORMATTED.replace(CLUSTER, OTHER_CLUSTER)}),
    formats("other cluster, ignored", "-g", changes=TWO, found={"one": FORMATTED.replace(CLUSTER, OTHER_CLUSTER)}),
    formats("other node, ignored", "-g", changes=TWO, found={"one": FORMATTED.replace("node.id=1", "node.id=2")}),
    formats("version 0", found={"one": "version=0\nbroker.id=1\n"}),
    formats("version 0, ignored", "-g", changes=TWO, found={"one": f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n"}),
    formats("version 0 without ids, ignored", "-g", changes=TWO, found={"one": "version=0\n"}),
    formats("no directory id, ignored", "-g", changes=TWO, found={"one": V1}),
    formats("reserved directory id, ignored", "-g", changes=TWO, found={"one": f"{V1}directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"}),
    formats("one directory id twice, ignored", "-g", changes=TWO, found={"one": FORMATTED, "two": FORMATTED}),
    formats("damaged file", found={"one": "version=1\n"}),
    formats("one of two damaged", changes=TWO, found={"one": "version=7\n"}),
    formats("damaged metadata directory", changes=TWO, found={"two": "version=7\n"}),
    formats("bad directory id", changes=TWO, found={"one": f"{V1}directory.id=short\n"}),
    formats("node id no number", changes=TWO, found={"one": f"version=1\nnode.id=x\ncluster.id={CLUSTER}\n"}),
    formats("one directory listed twice", changes={"log.dirs": "{root}/one,{root}/one"}),
    formats("blanks between directories", changes={"log.dirs": " {root}/one , {root}/two"}),
    formats("log.dir", changes={"log.dirs": None, "log.dir": "{root}/three"}),
    formats("below a missing directory", changes={"log.dirs": "{root}/deep/er"}),
    formats("below a file", changes={"log.dirs": "{root}/server.properties/one"}),
    formats("a file for a directory", changes={"log.dirs": "{root}/server.properties"}),
    formats("a slash after the directory", changes={"log.dirs": "{root}/one/"}),
    formats("empty metadata.log.dir", changes={"metadata.log.dir": ""}),
    formats("empty log.dirs", changes={"log.dirs": ""}),
)

FILES: Final = (
    formats("no process.roles", changes={"process.roles": None}),
    formats("empty process.roles", changes={"process.roles": ""}),
    formats("unknown role", changes={"process.roles": "voter"}),
    formats("role twice", changes={"process.roles": "broker,broker"}),
    formats("no node.id", changes={"node.id": None}),
    formats("broker.id for node.id", changes={"node.id": None, "broker.id": "1"}),
    formats("broker.id besides node.id", changes={"broker.id": "2"}),
    formats("negative node.id", changes={"node.id": "-1"}),
    formats("node.id a name", changes={"node.id": "one"}),
    formats("no controller.listener.names", changes={"controller.listener.names": None}),
    formats("no controller.listener.names on a broker", base=BROKER, changes={"controller.listener.names": None}),
    formats("controller listener not in listeners", changes={"listeners": "PLAINTEXT://127.0.0.1:9092"}),
    formats("controller listener without a protocol", changes={"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}),
    formats("controller listener without a protocol on a broker", base=BROKER, changes={"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}),
    formats("no protocol map", changes={"listener.security.protocol.map": None}),
    formats("no protocol map beside SSL", changes={"listener.security.protocol.map": None, "listeners": "SSL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093", "security.inter.broker.protocol": "SSL"}),
    formats("controller advertises another listener", base=CONTROLLER, changes={"advertised.listeners": "PLAINTEXT://a.example:9092"}),
    formats("empty controller.listener.names", changes={"controller.listener.names": ""}),
    formats("controller listener of a broker", base=BROKER, changes={"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"}),
    formats("controller with another listener", base=CONTROLLER, changes={"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"}),
    formats("two listeners on one port", changes={"listeners": "PLAINTEXT://127.0.0.1:9093,CONTROLLER://127.0.0.1:9093"}),
    formats("default listeners of a broker", base=BROKER, changes={"listeners": None}),
    formats("default listeners of a controller", base=CONTROLLER, changes={"listeners": None}),
    formats("no quorum", changes={"controller.quorum.voters": None}),
    formats("no quorum on a broker", base=BROKER, changes={"controller.quorum.bootstrap.servers": None}),
    formats("voters without this node", changes={"controller.quorum.voters": "2@127.0.0.1:9093"}),
    formats("voters with this broker", base=BROKER, changes={"controller.quorum.voters": "1@127.0.0.1:9093"}),
    formats("voters malformed", changes={"controller.quorum.voters": "1@127.0.0.1"}),
    formats("voter without an id", changes={"controller.quorum.voters": "127.0.0.1:9093"}),
    formats("bootstrap servers malformed", base=BROKER, changes={"controller.quorum.bootstrap.servers": "127.0.0.1"}),
    formats("both quorums", changes={"controller.quorum.bootstrap.servers": "127.0.0.1:9093"}),
    formats("advertised every interface", changes={"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}),
    formats("auto join on a broker", base=BROKER, changes={"controller.quorum.auto.join.enable": "true"}),
    formats("unknown key", changes={"no.such.key": "1"}),
    formats("value of another type", changes={"num.io.threads": "many"}),
    formats("value out of range", changes={"num.io.threads": "0"}),
    formats("zookeeper.connect", changes={"zookeeper.connect": "127.0.0.1:2181"}),
    formats("inter.broker.protocol.version", changes={"inter.broker.protocol.version": "3.9"}),
    formats("inter-broker listener unknown", changes={"inter.broker.listener.name": "NOSUCH"}),
    formats("inter-broker listener is the controllers'", changes={"inter.broker.listener.name": "CONTROLLER"}),
    formats("heartbeats longer than sessions", changes={"broker.heartbeat.interval.ms": "9000"}),
)

COMMAND_LINES: Final = (
    Case("no file", ("format", "-c", "{root}/nosuch.properties", "-t", CLUSTER)),
    Case("no cluster id", ("format", "-c", "{root}/server.properties")),
    Case("no --config", ("format", "-t", CLUSTER)),
    Case("empty cluster id", ("format", "-c", "{root}/server.properties", "-t", "")),
    Case("odd cluster id", ("format", "-c", "{root}/server.properties", "-t", "a b=ü:#!\\")),
    Case("cluster id of one letter", ("format", "-c", "{root}/server.properties", "--cluster-id=x")),
    Case("cluster id, a dash", ("format", "-c", "{root}/server.properties", "-t", "-x")),
    Case("long flags", ("format", "--config", "{root}/server.properties", "--cluster-id", CLUSTER)),
    Case("abbreviated flag", ("format", "--conf", "{root}/server.properties", "--cluster-id", CLUSTER)),
    Case("joined flags", ("format", "-c{root}/server.properties", f"-t{CLUSTER}", "-g")),
    formats("unknown flag", "--nosuch"),
    formats("word too many", "more"),
    Case("no command", ()),
    Case("unknown command", ("nosuch",)),
)

INFO: Final = (
    informs("info: formatted", found={"one": FORMATTED}),
    informs("info: not formatted", found={"one": None}),
    informs("info: no directory"),
    informs("info: a file", changes={"log.dirs": "{root}/server.properties"}),
    informs("info: two formatted", changes=TWO, found={"one": FORMATTED, "two": FORMATTED.replace(ID_1, ID_2)}),
    informs("info: one formatted", changes=TWO, found={"one": FORMATTED, "two": None}),
    informs("info: one missing", changes=TWO, found={"one": FORMATTED}),
    informs("info: two clusters", changes=TWO, found={"one": FORMATTED, "two": FORMATTED.replace(CLUSTER, OTHER_CLUSTER)}),
    informs("info: two nodes", changes=TWO, found={"one": FORMATTED, "two": FORMATTED.replace("node.id=1", "node.id=2")}),
    informs("info: version 0", found={"one": f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n"}),
    informs("info: no version", found={"one": f"broker.id=1\ncluster.id={CLUSTER}\n"}),
    informs("info: no process.roles", changes={"process.roles": None}, found={"one": FORMATTED}),
    informs("info: damaged", found={"one": "version=7\n"}),
    informs("info: no node id", found={"one": f"version=1\ncluster.id={CLUSTER}\n"}),
    informs("info: no cluster id", found={"one": "version=1\nnode.id=1\n"}),
    informs("info: no directory id", found={"one": V1}),
    informs("info: bad directory id", found={"one": f"{V1}directory.id=short\n"}),
    informs("info: node id no number", found={"one": f"version=1\nnode.id=x\ncluster.id={CLUSTER}\n"}),
    informs("info: other keys", found={"one": FORMATTED + "more=1\n"}),
    informs("info: metadata elsewhere", changes={"metadata.log.dir": "{root}/metadata"}, found={"one": FORMATTED, "metadata": FORMATTED.replace(ID_1, ID_2)}),
    Case("info: no --config", ("info",)),
)

CASES: Final = (*QUORUMS, *FEATURES, *SCRAM, *DIRECTORIES, *FILES, *COMMAND_LINES, *INFO)
