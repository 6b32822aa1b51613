"""A TaskManager request indicates a fault only if a job lacked the requested resources."""

from __future__ import annotations

import pytest

from tests.unit.diagnosis.test_incidents import line, signatures, state

REQUEST = line(
    1,
    "Requesting new worker with resource spec WorkerResourceSpec {cpuCores=1.0, numSlots=1},"
    " current pending count: 1.",
    logger="org.apache.flink.runtime.resourcemanager.active.ActiveResourceManager",
)
REFUSED = (
    "org.apache.flink.runtime.jobmanager.scheduler.NoResourceAvailableException: Slot request bulk"
    " is not fulfillable! Could not allocate the required slot within slot request timeout\n"
)
ASKED, MISSED = "resources/taskmanager-not-registered", "resources/slots-unavailable"


def registered(second: float, name: str) -> str:
    return line(second, f"Registering TaskManager with ResourceID {name} (pekko.tcp://flink@tm)")


def refused(second: float) -> str:
    failed = "Map (1/2) (0123456789abcdef0123456789abcdef_0_0_0) switched from SCHEDULED to FAILED"
    restarting = state(second + 0.1, "RUNNING", "RESTARTING")
    return line(second, f"{failed} on [unassigned resource].") + REFUSED + restarting


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (REQUEST, []),
        (REQUEST + registered(20, "tm-1"), []),
        (REQUEST + refused(40), [ASKED, MISSED]),
        (REQUEST + refused(40) + registered(50, "tm-1"), [ASKED, MISSED]),
        (REQUEST + registered(20, "tm-1") + refused(40), [MISSED]),
        # The second TaskManager did not register, even though the first one registered again.
        (2 * REQUEST + registered(20, "tm-1") + refused(40), [ASKED, MISSED]),
        (2 * REQUEST + 2 * registered(20, "tm-1") + refused(40), [ASKED, MISSED]),
        (2 * REQUEST + registered(20, "tm-1") + registered(21, "tm-2") + refused(40), [MISSED]),
        # A fixed cluster requests no TaskManagers.
        (refused(40), [MISSED]),
    ],
)
def test_a_request_counts_where_slots_were_refused_before_it_was_answered(
    diagnose, text: str, found: list[str]
) -> None:
    (incident,) = diagnose(jobmanager=text).incidents
    assert signatures(incident) == found
    if found[:1] == [ASKED]:
        assert incident.diagnoses[0].explains == (MISSED,)


def test_slot_request_of_hours_ago_is_not_unmet_now(diagnose) -> None:
    text = REQUEST + refused(40).replace(" 05:", " 09:")
    (incident,) = diagnose(jobmanager=text).incidents
    assert signatures(incident) == [MISSED]


def test_folded_slot_requests_keep_their_count(diagnose) -> None:
    text = 200 * REQUEST + "".join(registered(20 + n / 100, f"tm-{n}") for n in range(200))
    (incident,) = diagnose(jobmanager=text + refused(58)).incidents
    assert signatures(incident) == [MISSED]
    (incident,) = diagnose(jobmanager=REQUEST + text + refused(58)).incidents
    assert signatures(incident)[0] == ASKED
