"""Access control lists, made as an operator makes them."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

ANSWER_SECONDS = 120.0
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER
CLUSTER_NAME = "kafka-cluster"
DESCRIBE, READ, WRITE = AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE
CREATE, ALL = AclOperation.CREATE, AclOperation.ALL


def allow(
    bootstrap: str | dict[str, str],
    user: str,
    kind: ResourceType,
    name: str,
    *operations: AclOperation,
) -> None:
    """Allow a user these operations on the named resource.

    `bootstrap` is where nobody needs to log in, or the settings of who may make ACLs.
    """
    literal, allowed = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    wanted = [
        AclBinding(kind, name, literal, f"User:{user}", "*", operation, allowed)
        for operation in operations
    ]
    known = {"bootstrap.servers": bootstrap} if isinstance(bootstrap, str) else bootstrap
    admin = AdminClient({**known, "log_level": 0})
    for answer in admin.create_acls(wanted).values():
        answer.result(ANSWER_SECONDS)
