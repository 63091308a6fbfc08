"""The outcome of a run, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.api_keys import ApiKey
from tests.hostile.frames.requests import served
from tests.hostile.run import MEGABYTE
from tests.hostile.watched_broker import TOLD_MS

if TYPE_CHECKING:
    from collections import Counter

    from tests.hostile.run import Run

MOST_WARNINGS = 25
MOST_HELD = 40


def describe(run: Run) -> str:
    """Several lines: numbers first, findings last."""
    attack, outcome, report = run.attack, run.outcome, run.outcome.report
    quantiles = ", ".join(
        f"p{share * 100:g} {report.quantile_ms(share):.1f}" for share in (0.5, 0.9, 0.99, 0.999)
    )
    answers = sum(attack.answers.counts.values())
    held = [ms for ms, _ in run.log.held]
    frames, crowd, janitor = run.settings.frames, run.bystanders, run.janitor
    return f"""\
seed {run.settings.seed}, frames {frames.start} to {frames.stop}: {attack.sent} sent \
({attack.sent_bytes / MEGABYTE:.0f} MB) in {outcome.seconds:.0f} s, {attack.withheld} withheld as \
lawful harm
answers: {answers} well-formed and in order, {sum(attack.answers.refused.values())} frames hung \
up on, {attack.answers.unread} behind them, {attack.answers.given_up} given up
bystanders: {dict(crowd.opened)} connections, {crowd.refused} refused; removed \
{janitor.removed_topics} topics, {janitor.removed_groups} groups
resident: {outcome.resident_before / MEGABYTE:.1f} MB before, \
{outcome.resident_peak / MEGABYTE:.1f} at most, {outcome.resident_after / MEGABYTE:.1f} after\
{_shown_memory(run.log.memory)}
Metadata of a control, ms: {quantiles}, most {max(report.latencies_ms, default=0):.1f}, \
{len(report.latencies_ms)} times
controls: {sum(map(len, report.acknowledged.values()))} records acknowledged, \
{outcome.ledger_records} in the ledger after a restart; {report.committed_transfers} transactions \
committed; {report.group_records} records read in a group, silent for \
{report.group_seconds_of_silence:.1f} s at most
log: {run.log.bytes / MEGABYTE:.1f} MB; held the event loop up for {TOLD_MS:.0f} ms or more: \
{len(held)} times, {sum(held)} ms in all"""


def _shown_memory(told: dict[str, Any]) -> str:
    if not told:
        return ""
    _, collected, trimmed = (bytes_ / MEGABYTE for bytes_ in told["resident"])
    return f", {collected:.1f} collected, {trimmed:.1f} trimmed"


def coverage(run: Run) -> str:
    """Answers by request, how many frames got none, and the log's warnings."""
    counts, refused = run.attack.answers.counts, run.attack.answers.refused
    lines = []
    for versions in dict.fromkeys(served()):
        key = int(versions[0][0].API_KEY)
        shown = " ".join(f"{counts[key, version]}" for _, version in versions)
        none = sum(count for (one, _), count in refused.items() if one == key)
        lines.append(f"{ApiKey(key).name:30} v{versions[0][1]}: {shown}  (hung up: {none})")
    lines += [f"held {ms:8} ms: {what}" for ms, what in sorted(run.log.held)[-MOST_HELD:]]
    for kind in ("garbage", "raised", "left"):
        found = list(run.log.memory.get(kind, {}).items())[:MOST_WARNINGS]
        lines += [f"{kind} {count:8} {what}" for what, count in found]
    lines += [f"{count:8} {text}" for text, count in _most(run.log.warnings)]
    return "\n".join(lines)


def _most(warnings: Counter[str]) -> list[tuple[str, int]]:
    return warnings.most_common(MOST_WARNINGS)
