"""Idle timeouts, on a clock that moves when the test says so."""

from __future__ import annotations

import time

import pytest
from finsy.proto import p4r, stratum
from google.protobuf import any_pb2
from hypothesis import given
from hypothesis import strategies as st

from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.state.idle_timeouts import IdleTimers
from tests.unit.p4runtime.client import DELETE, INSERT, MODIFY, Client, Stream, action, entry, exact
from tests.unit.p4runtime.fake_device import FakeDevice, Table
from tests.unit.p4runtime.sample_program import AGING, DROP, HOSTS, KINDS, MARK, ROUTES, config

TTL_NS = 1000


def aging(key: int = 10, **more: object) -> p4r.TableEntry:
    return entry(AGING, exact(1, bytes([key])), action=action(DROP), **more)


class TestTimers:
    """A model: an entry expires when the time that has passed since its last hit, or its last expiry if that was
    later, reaches its time to live."""

    @given(st.lists(st.tuples(st.sampled_from(["arm", "hit", "wait"]), st.integers(0, 3), st.integers(0, 9))))
    def test_against_a_model(self, steps: list[tuple[str, int, int]]) -> None:
        hits: dict[int, int] = {}
        timers: IdleTimers[int] = IdleTimers(hits.__getitem__)
        model: dict[int, tuple[int, int]] = {}  # time to live, and when the entry was noticed last
        now = 0
        for step, name, amount in steps:
            if step == "arm":
                hits.setdefault(name, now)
                timers.arm(name, amount, now)
                if amount == 0:
                    model.pop(name, None)
                elif name not in model or model[name][0] != amount:
                    model[name] = amount, now
            elif step == "hit":
                hits[name] = now
            else:
                # One tick at a time: how late an expiry is noticed is the caller's choice.
                for _ in range(amount):
                    now += 1
                    due = {n for n, (ttl, since) in model.items() if max(since, hits[n]) + ttl <= now}
                    assert set(timers.expired(now)) == due
                    model.update({n: (model[n][0], now) for n in due})
        if timers.next_ns is None:
            assert model == {}

    def test_stopped_timers_do_not_pile_up(self) -> None:
        timers: IdleTimers[int] = IdleTimers(lambda _: 0)
        for i in range(10_000):
            timers.arm(1, 1 + i % 2, 0)
        assert len(timers._heap) < 2_000
        assert timers.expired(2) == [1]


@pytest.fixture
def table(client: Client, device: FakeDevice) -> Table:
    return device.state.tables["Ingress.aging"]


class TestEntries:
    def test_time_to_live(self, client: Client, table: Table) -> None:
        assert client.insert(aging(idle_timeout_ns=TTL_NS)) == StatusCode.OK
        assert client.read(entry(AGING)) == [aging(idle_timeout_ns=TTL_NS)]
        assert client.modify(aging(idle_timeout_ns=5)) == StatusCode.OK
        assert client.read(entry(AGING)) == [aging(idle_timeout_ns=5)]
        assert client.modify(aging()) == StatusCode.OK
        assert client.read(entry(AGING)) == [aging()]

    def test_time_since_the_last_hit(self, client: Client, device: FakeDevice, table: Table) -> None:
        client.write((INSERT, aging()))
        [handle] = table.entries
        device.now_ns = 700
        asked = entry(AGING, time_since_last_hit=p4r.TableEntry.IdleTimeout())
        assert client.read(asked)[0].time_since_last_hit.elapsed_ns == 700
        table.last_hits_ns[handle] = 600
        assert client.read(asked)[0].time_since_last_hit.elapsed_ns == 100
        assert not client.read(entry(AGING))[0].HasField("time_since_last_hit")
        table.last_hits_ns[handle] = 800  # a packet that came after the clock was read
        assert client.read(asked)[0].time_since_last_hit.elapsed_ns == 0

    @pytest.mark.parametrize(
        "wrong",
        [
            aging(idle_timeout_ns=-1),
            aging(time_since_last_hit=p4r.TableEntry.IdleTimeout()),
            entry(HOSTS, exact(1, b"\x01"), action=action(MARK, b"\x01"), idle_timeout_ns=1),
            entry(AGING, action=action(DROP), is_default_action=True, idle_timeout_ns=1),
        ],
    )
    def test_errors(self, client: Client, wrong: p4r.TableEntry) -> None:
        assert client.insert(wrong) == client.modify(wrong) == StatusCode.INVALID_ARGUMENT

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            (
                entry(HOSTS, exact(1, b"\x01"), action=action(DROP), idle_timeout_ns=1),
                "idle_timeout_ns must be set to 0 for tables which do not support idle timeout",
            ),
            (
                entry(
                    AGING,
                    action=action(DROP),
                    is_default_action=True,
                    time_since_last_hit=p4r.TableEntry.IdleTimeout(),
                ),
                "has_time_since_last_hit must not be set in WriteRequest",
            ),
        ],
    )
    def test_the_words_that_clients_of_bmv2_look_for(self, client: Client, wrong: p4r.TableEntry, words: str) -> None:
        assert client.failures((MODIFY, wrong)) == [(StatusCode.INVALID_ARGUMENT, words)]

    def test_tables_without(self, client: Client) -> None:
        everything = entry(0, time_since_last_hit=p4r.TableEntry.IdleTimeout())
        assert not any(found.HasField("time_since_last_hit") for found in client.read(everything))

    def test_survive_reconciliation(self, client: Client) -> None:
        client.write((INSERT, aging(idle_timeout_ns=TTL_NS)))
        client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
        assert client.read(entry(AGING)) == [aging(idle_timeout_ns=TTL_NS)]


class TestNotifications:
    def test_content(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        written = aging(idle_timeout_ns=TTL_NS, metadata=b"m", controller_metadata=3)
        bare_client.write((INSERT, written), (INSERT, aging(11)), (INSERT, aging(12, idle_timeout_ns=10**12)))
        device.now_ns = TTL_NS
        before_ns = time.time_ns()
        notification = primary.next().idle_timeout_notification
        [expired] = notification.table_entry
        written.ClearField("action")
        assert expired == written
        assert before_ns - 10**9 < notification.timestamp < time.time_ns() + 10**9

    def test_once_in_a_time_to_live(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        bare_client.write((INSERT, aging(1, idle_timeout_ns=TTL_NS)), (INSERT, aging(2, idle_timeout_ns=3 * TTL_NS)))
        keys = []
        for now_ns in (1000, 2000, 3000, 4000):
            device.now_ns = now_ns
            notified = primary.next().idle_timeout_notification.table_entry
            keys.append(sorted(e.match[0].exact.value[0] for e in notified))
        assert keys == [[1], [1], [1, 2], [1]]

    def test_entries_that_are_hit(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        bare_client.write((INSERT, aging(1, idle_timeout_ns=TTL_NS)), (INSERT, aging(2, idle_timeout_ns=TTL_NS)))
        table = device.state.tables["Ingress.aging"]
        first, _ = table.entries
        device.now_ns = 500
        table.last_hits_ns[first] = 500
        for now_ns, expected in ((1000, [2]), (1500, [1]), (2000, [2])):
            device.now_ns = now_ns
            notified = primary.next().idle_timeout_notification.table_entry
            assert [e.match[0].exact.value[0] for e in notified] == expected

    def test_entries_that_are_gone(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        bare_client.write(*((INSERT, aging(i, idle_timeout_ns=TTL_NS)) for i in (1, 2, 3)))
        bare_client.write((DELETE, aging(1)), (MODIFY, aging(2)))
        device.now_ns = TTL_NS
        notified = primary.next().idle_timeout_notification.table_entry
        assert [e.match[0].exact.value[0] for e in notified] == [3]

    def test_roles_that_see_the_table(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        def join(role: str, table_id: int) -> Stream:
            scope = any_pb2.Any()
            scope.Pack(stratum.P4RoleConfig(shared_p4_ids=[table_id]))
            stream = bare_client.stream()
            stream.arbitrate(1, role=p4r.Role(name=role, config=scope))
            stream.next()
            return stream

        concerned, other = join("aging", AGING), join("routes", ROUTES)
        bare_client.write((INSERT, aging(idle_timeout_ns=TTL_NS)))
        device.now_ns = TTL_NS
        for stream in (primary, concerned):
            assert len(stream.next().idle_timeout_notification.table_entry) == 1
        assert other.silent()


def test_const_entries_do_not_expire(client: Client) -> None:
    aging_kinds = config()
    aging_kinds.p4info.tables[3].idle_timeout_behavior = 1
    aging_kinds.p4_device_config = aging_kinds.p4_device_config.replace(
        b'"name": "Ingress.kinds",', b'"name": "Ingress.kinds", "support_timeout": true,'
    )
    client.push(pipeline=aging_kinds)
    assert client.modify(entry(KINDS, exact(1, b"\x06"), idle_timeout_ns=1)) == StatusCode.INVALID_ARGUMENT
