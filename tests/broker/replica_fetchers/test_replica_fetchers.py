"""Followers become copies of their leader, byte for byte, from any earlier state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.broker.replica_fetchers.nodes import BACKOFF_MS, Ensemble, run_ensemble

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ALL = (0, 1, 2)
FETCHER = "broker"


def test_followers_replicate_the_leaders_log(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        for _ in range(20):
            nodes[0].append(5)
        await nodes.until_equal(100)

        nodes[0].append(7)
        await nodes.until_equal(107)

    run_ensemble(tmp_path, scenario)


def test_records_are_committed_only_once_all_in_sync_replicas_have_them(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        nodes[2].is_up = False
        nodes[2].following.stop()

        nodes[0].append(5)
        await nodes.until(lambda: nodes[1].offsets[1] == 10)

        assert nodes[0].offsets == (5, 10)
        nodes[2].is_up = True
        nodes.lead(0, isr=ALL, epoch=1)
        await nodes.until_equal(10)

    run_ensemble(tmp_path, scenario)


def test_an_old_leader_truncates_uncommitted_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", FETCHER)

    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        for node_id in (1, 2):
            nodes[node_id].following.stop()
        nodes[0].append(3, value=b"lost")
        nodes[0].is_up = False

        nodes.lead(1, isr=(1, 2), epoch=1)
        nodes[1].append(4, value=b"kept")
        await nodes.until_equal(9)
        nodes[0].is_up = True
        nodes.lead(1, isr=(1, 2), epoch=2)
        await nodes.until_equal(9)

        assert b"lost" not in nodes[0].stored
        assert nodes[0].stored.count(b"kept") == 4

    run_ensemble(tmp_path, scenario)
    assert "truncated from offset 8 to 5" in caplog.text


def test_committed_records_survive_a_follower_that_knew_an_old_high_watermark(
    tmp_path: Path,
) -> None:
    """The case of KIP-101: cut at its own high watermark, broker 1 would lose offset 5 to 9."""

    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        nodes[0].append(5)
        await nodes.until(lambda: all(nodes[one].offsets[1] == 10 for one in (1, 2)))
        nodes[1].partition.log.offsets.high_watermark = 5  # what its checkpoint said after a crash

        nodes.lead(1, isr=ALL, epoch=1)
        await nodes.until_equal(10)

    run_ensemble(tmp_path, scenario)


def test_a_follower_with_a_history_of_many_epochs_is_cut_where_they_part(tmp_path: Path) -> None:
    """Broker 2 led twice alone, so its epochs 1 and 3 are unknown to the others (KIP-279)."""

    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        nodes.lead(2, isr=(2,), epoch=1, told=[2])
        nodes[2].append(2, value=b"lost")
        nodes.lead(2, isr=(2,), epoch=3, told=[2])
        nodes[2].append(2, value=b"lost")
        nodes.lead(0, isr=(0, 1), epoch=2, told=[0, 1])
        nodes[0].append(6, value=b"kept")

        nodes.lead(0, isr=(0, 1), epoch=4)
        await nodes.until_equal(11)

        assert b"lost" not in nodes[2].stored

    run_ensemble(tmp_path, scenario)


def test_a_follower_behind_the_leaders_log_start_starts_over(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=(0, 1), epoch=0, told=[0, 1])
        nodes[0].append(10)
        await nodes.until(lambda: nodes[0].offsets == (10, 10))
        log = nodes[0].partition.log
        log.roll(0)
        log.advance_log_start_offset(10)
        log.delete_expired(0)
        nodes[0].append(3)

        nodes.lead(0, isr=(0, 1), epoch=1)
        await nodes.until(lambda: nodes[2].offsets == (13, 13))

        assert nodes[2].partition.log.log_start_offset == 10
        assert nodes[2].stored == nodes[0].stored

    run_ensemble(tmp_path, scenario)


def test_a_follower_longer_than_an_unclean_leader_is_cut(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=(0, 1), epoch=0, told=[0, 1])
        nodes[0].append(10)
        await nodes.until(lambda: nodes[1].offsets == (10, 10))
        nodes[0].is_up = False

        nodes.lead(2, isr=(2,), epoch=1, told=[1, 2])
        nodes[2].append(2)
        await nodes.until(lambda: nodes[1].offsets[1] == 2)

        await nodes.until_equal(2)

    run_ensemble(tmp_path, scenario)


def test_a_follower_waits_for_a_leader_that_is_away(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes[0].is_up = False
        nodes.lead(0, isr=ALL, epoch=0, told=[1, 2])
        nodes[0].is_up = True
        nodes.lead(0, isr=ALL, epoch=0, told=[0])
        nodes[0].append(4)
        await nodes.until_equal(4)

    run_ensemble(tmp_path, scenario)


def test_a_leader_that_is_away_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", FETCHER)

    async def scenario(nodes: Ensemble) -> None:
        nodes[0].is_up = False
        nodes.lead(0, isr=ALL, epoch=0, told=[1])
        for _ in range(5):
            await nodes[1].timers.sleep(BACKOFF_MS)
        nodes[0].is_up = True
        nodes.lead(0, isr=ALL, epoch=0, told=[0, 2])
        nodes[0].append(4)
        await nodes.until_equal(4)

    run_ensemble(tmp_path, scenario)
    told = [one.getMessage() for one in caplog.records if "fetching from" in one.getMessage()]
    assert len(told) == 2, told
    assert told[0].startswith("fetching from leader 0 failed: ")
    assert told[1] == "fetching from leader 0 resumed"


def test_retention_of_the_leader_reaches_followers(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(10)
        await nodes.until_equal(10)

        nodes[0].partition.log.advance_log_start_offset(6)
        nodes[0].append(1)
        await nodes.until(lambda: nodes[1].partition.log.log_start_offset == 6)

    run_ensemble(tmp_path, scenario)


def test_an_epoch_that_a_follower_led_without_appending_is_forgotten(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else the leader, which never knew the epoch, has it truncated to its end, for ever."""
    caplog.set_level("INFO", FETCHER)

    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        nodes.lead(2, isr=(2,), epoch=1, told=[2])

        nodes.lead(0, isr=(0, 1), epoch=2)
        nodes[0].append(3)

        await nodes.until_equal(8)
        assert nodes[2].partition.log.latest_epoch == 2

    run_ensemble(tmp_path, scenario)
    assert "cut from" not in caplog.text
