"""The timeout's estimator, and round trips without the other workers' lateness."""

from __future__ import annotations

from gradbed.hosts.transport.retransmission_timeout import (
    CONSTANT_TIMEOUTS,
    MAX_BACKED_OFF_US,
    RetransmissionTimeout,
    backed_off_us,
)
from tests.unit.hosts.aggregation.worker.reference.round_trips import (
    INITIAL_FACTOR,
    KEPT_ROUNDS,
    LOSSLESS_PATIENCE,
    MAX_TIMEOUT_US,
    PROBE_PATIENCE,
    THIN_STREAM,
    RoundTrips,
)

MIN_TIMEOUT_US = 1000
MARGIN_US = LOSSLESS_PATIENCE * MIN_TIMEOUT_US
INITIAL_US = INITIAL_FACTOR * MIN_TIMEOUT_US


def test_estimator_follows_rfc_6298() -> None:
    timeout = RetransmissionTimeout(initial_us=77)
    assert timeout.base_us(margin_us=1000) == 77
    timeout.sample(8000)
    assert timeout.base_us(margin_us=1000) == 8000 + 4 * 4000
    timeout.sample(16_000)
    # RTTVAR = 3/4 * 4000 + 1/4 * |8000 - 16000| = 5000; SRTT = 7/8 * 8000 + 1/8 * 16000 = 9000
    assert timeout.base_us(margin_us=1000) == 9000 + 4 * 5000


def test_the_margin_comes_on_top_of_the_round_trip() -> None:
    timeout = RetransmissionTimeout(initial_us=77)
    for _ in range(200):
        timeout.sample(5000)
    assert timeout.base_us(margin_us=1000) == 5000 + 1000


def test_first_timers_are_constant_and_later_ones_double_up_to_a_bound() -> None:
    assert [backed_off_us(100, timeouts) for timeouts in range(CONSTANT_TIMEOUTS)] == [100] * CONSTANT_TIMEOUTS
    assert backed_off_us(100, CONSTANT_TIMEOUTS) == 200
    assert backed_off_us(100, CONSTANT_TIMEOUTS + 1) == 400
    assert backed_off_us(100, 1000) == MAX_BACKED_OFF_US
    # A round trip may be longer than the bound of the backoff.
    assert backed_off_us(5_000_000, 0) == backed_off_us(5_000_000, 1000) == 5_000_000


def base_us(trips: RoundTrips) -> int:
    return trips.deadline_us(1 << 40, timeouts=0, resent=False, unacknowledged=99) - (1 << 40)


def one_round(trips: RoundTrips, start_us: int, *round_trips_us: int) -> None:
    """Fragments sent at the start, each acknowledged after so long."""
    trips.begin(start_us)
    for round_trip_us in round_trips_us:
        trips.acknowledged(start_us, start_us + round_trip_us, after_resend=False)


def test_lateness_of_others_is_taken_off_the_samples() -> None:
    punctual, late = RoundTrips(MIN_TIMEOUT_US), RoundTrips(MIN_TIMEOUT_US)
    for trips, wait_us in ((punctual, 0), (late, 700_000)):
        one_round(trips, 0, 2000, 9000)
        one_round(trips, 1_000_000, 2000 + wait_us, 9000 + wait_us)
    assert base_us(late) == base_us(punctual)
    assert late.least_us == 2000


def test_lateness_taken_for_a_round_trip_is_forgotten_as_soon_as_it_shows() -> None:
    trips, fresh = RoundTrips(MIN_TIMEOUT_US), RoundTrips(MIN_TIMEOUT_US)
    one_round(trips, 0, 700_000)  # nothing is known yet that could be compared
    assert base_us(trips) > 2_000_000
    one_round(trips, 1_000_000, 2000)
    one_round(fresh, 1_000_000, 2000)
    assert base_us(trips) == base_us(fresh)


def test_a_longer_way_is_no_lateness_for_ever() -> None:
    trips = RoundTrips(MIN_TIMEOUT_US)
    one_round(trips, 0, 2000, 3000)
    for number in range(1, KEPT_ROUNDS + 1):
        one_round(trips, number * 1_000_000, 50_000, 50_000)
        assert trips.least_us == 2000
    for number in range(KEPT_ROUNDS + 1, KEPT_ROUNDS + 60):
        one_round(trips, number * 1_000_000, 50_000, 50_000)
        assert trips.least_us == 50_000
    assert 50_000 + MARGIN_US <= base_us(trips) < 51_000 + MARGIN_US


def test_fragments_sent_after_the_first_ack_count_in_full() -> None:
    trips = RoundTrips(MIN_TIMEOUT_US)
    one_round(trips, 0, 2000, 2000)
    trips.begin(1_000_000)
    trips.acknowledged(1_000_000, 1_500_000, after_resend=True)
    trips.acknowledged(1_500_001, 1_500_001 + 40_000, after_resend=False)
    # RTTVAR = 3/4 * 750 + 1/4 * 38000, SRTT = 7/8 * 2000 + 1/8 * 40000
    assert base_us(trips) == round(6750 + 4 * (0.75 * 750 + 0.25 * 38_000))


def test_marked_sums_are_no_samples() -> None:
    trips = RoundTrips(MIN_TIMEOUT_US)
    one_round(trips, 0, 2000)
    before_us = base_us(trips)
    trips.begin(1_000_000)
    trips.acknowledged(1_000_000, 1_300_000, after_resend=True)
    trips.acknowledged(1_000_000, 1_500_000, after_resend=True)
    assert base_us(trips) == before_us == 2000 + 4 * 1000


def test_patience_shrinks_with_a_loss_and_grows_again_without() -> None:
    trips = RoundTrips(MIN_TIMEOUT_US)
    for number in range(50):
        one_round(trips, number * 1_000_000, 2000)
    assert base_us(trips) == 2000 + MARGIN_US
    trips.acknowledged(49_000_000, 49_002_000, after_resend=True)
    for number in range(50, 50 + KEPT_ROUNDS):
        assert base_us(trips) == 2000 + MIN_TIMEOUT_US
        one_round(trips, number * 1_000_000, 2000)
    assert base_us(trips) == 2000 + MARGIN_US


def test_timers_start_at_the_first_ack() -> None:
    trips = RoundTrips(MIN_TIMEOUT_US)
    trips.begin(0)
    assert not trips.all_have_begun
    trips.acknowledged(0, 400_000, after_resend=True)
    assert trips.all_have_begun
    assert trips.deadline_us(0, timeouts=0, resent=False, unacknowledged=9) == 400_000 + INITIAL_US
    assert trips.deadline_us(400_001, timeouts=0, resent=False, unacknowledged=9) == 400_001 + INITIAL_US


def test_probes_are_more_patient_the_more_fragments_are_out() -> None:
    trips = RoundTrips(MIN_TIMEOUT_US)
    trips.begin(0)
    for count, factor in ((1, 1), (3, 3), (PROBE_PATIENCE, PROBE_PATIENCE), (500, PROBE_PATIENCE)):
        assert trips.deadline_us(7, timeouts=0, resent=False, unacknowledged=count) == 7 + factor * INITIAL_US


def test_the_patience_of_probes_has_an_end() -> None:
    trips = RoundTrips(200_000)
    one_round(trips, 0, 100_000)
    trips.begin(1_000_000)
    assert trips.deadline_us(0, timeouts=0, resent=False, unacknowledged=1) == 900_000
    assert trips.deadline_us(0, timeouts=0, resent=False, unacknowledged=8) == MAX_TIMEOUT_US


def test_resends_of_the_last_fragments_wait_for_a_short_round_trip_only() -> None:
    trips = RoundTrips(MIN_TIMEOUT_US)
    one_round(trips, 0, 2000, 90_000)
    trips.acknowledged(0, 91_000, after_resend=True)
    now_us = 100_000
    usual_us = base_us(trips)
    assert usual_us > 90_000

    def timer_us(resent: bool, unacknowledged: int, timeouts: int = 0) -> int:
        return trips.deadline_us(now_us, timeouts=timeouts, resent=resent, unacknowledged=unacknowledged) - now_us

    assert timer_us(resent=True, unacknowledged=THIN_STREAM) == 2000 + MIN_TIMEOUT_US
    assert timer_us(resent=True, unacknowledged=THIN_STREAM + 1) == usual_us
    assert timer_us(resent=False, unacknowledged=1) == usual_us
    assert timer_us(resent=True, unacknowledged=1, timeouts=CONSTANT_TIMEOUTS) == 2 * (2000 + MIN_TIMEOUT_US)
