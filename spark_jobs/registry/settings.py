"""What becomes of requests about compatibility levels and modes: decided without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_jobs.registry import registry_errors as errors
from spark_jobs.registry.compatibility import LEVELS
from spark_jobs.registry.registration import Decision
from spark_jobs.registry.registry_errors import RegistryError
from spark_jobs.registry.schema_records import Config, config_record, mode_record
from spark_jobs.registry.subjects import DEFAULT_COMPATIBILITY, DEFAULT_MODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_jobs.registry.subjects import Subjects

MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")

Answer = dict[str, Any]


def config_of(state: Subjects, subject: str | None, *, default_to_global: bool) -> Answer:
    """Return the compatibility of a subject, or of all that have none."""
    config = state.configs.get(subject)
    if config is None and subject is not None and not default_to_global:
        words = f"Subject '{subject}' does not have subject-level compatibility configured"
        raise RegistryError(errors.NO_SUBJECT_COMPATIBILITY, words)
    found = config or state.configs.get(None) or Config()
    return {"compatibilityLevel": DEFAULT_COMPATIBILITY} | found.document()


def set_config(state: Subjects, subject: str | None, body: Mapping[str, Any]) -> Decision[Answer]:
    """Set the compatibility of a subject, or of all that have none; what is not given stays."""
    level = body.get("compatibility")
    if level is not None and str(level).upper() not in LEVELS:
        words = (
            "Invalid compatibility level. Valid values are none, backward, forward, full, "
            "backward_transitive, forward_transitive, and full_transitive"
        )
        raise RegistryError(errors.INVALID_COMPATIBILITY, words)
    before = state.configs.get(subject, Config())
    normalize = body.get("normalize")
    config = Config(
        before.compatibility if level is None else str(level).upper(),
        before.normalize if normalize is None else bool(normalize),
    )
    return Decision(config.document("compatibility"), (config_record(subject, config),))


def delete_config(state: Subjects, subject: str | None) -> Decision[Answer]:
    """Take the compatibility of a subject, or the global one, away; return what it was."""
    before = config_of(state, subject, default_to_global=False)
    return Decision(before, (config_record(subject, None),))


def mode_of(state: Subjects, subject: str | None, *, default_to_global: bool) -> Answer:
    """Return the mode of a subject, or of all that have none."""
    mode = state.modes.get(subject)
    if mode is None and subject is not None and not default_to_global:
        words = f"Subject '{subject}' does not have subject-level mode configured"
        raise RegistryError(errors.NO_SUBJECT_MODE, words)
    return {"mode": mode or state.modes.get(None, DEFAULT_MODE)}


def set_mode(
    state: Subjects, subject: str | None, body: Mapping[str, Any], *, force: bool
) -> Decision[Answer]:
    """Set the mode of a subject, or of all that have none."""
    mode = str(body.get("mode")).upper()
    if mode not in MODES:
        words = f"Invalid mode. Valid values are {', '.join(MODES)}"
        raise RegistryError(errors.INVALID_MODE, words)
    there = state.all_versions() if subject is None else iter(state.of(subject))
    if mode == "IMPORT" and not force and next(there, None) is not None:
        words = "Cannot import since found existing subjects"
        raise RegistryError(errors.OPERATION_NOT_PERMITTED, words)
    return Decision({"mode": mode}, (mode_record(subject, mode),))


def delete_mode(state: Subjects, subject: str | None) -> Decision[Answer]:
    """Take the mode of a subject, or the global one, away; return what it was."""
    before = mode_of(state, subject, default_to_global=False)
    return Decision(before, (mode_record(subject, None),))
