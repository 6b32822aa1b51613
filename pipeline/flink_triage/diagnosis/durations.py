"""Every duration by which a diagnosis relates lines to each other, the shortest first.

Some must not exceed others: what a rule looks back on must still be there when a scheduled run goes
on from the last one.  `tests/unit/diagnosis/test_durations.py` asserts the order.
"""

from __future__ import annotations

from datetime import timedelta

# A refused connection is followed by the line that says what it was for.
CONNECTION_ATTEMPT = timedelta(seconds=1)
# Processes log a fault that they share within a second.
FIRST_FAULT = timedelta(seconds=1)
# A job logs its failure right after its task's; a busy JobManager takes longer.
ANSWER = timedelta(seconds=2)
# Processes log one failure within moments of each other, on clocks that may differ a little.
FAILURE_SLACK = timedelta(seconds=2)
# Below this, delays of logging and of messages look like a clock that is off.
CLOCK_TOLERANCE = timedelta(seconds=2)
# Other processes log the effects of an orderly stop.
STOP_EFFECT = timedelta(seconds=5)
# All processes of a cluster are stopped at once, or one after the other with a grace period.
STOPPED_TOGETHER = timedelta(seconds=10)
# Another process may log an effect before its cause: other clock, other buffer.
LOG_ORDER = timedelta(seconds=30)
# A task fails of an exception that was logged before; closing files may take some of it.
TASK_FAILS = timedelta(minutes=1)
# JvmShutdownSafeguard ends the JVM five seconds after a signal; Kubernetes waits thirty.
SHUTDOWN = timedelta(minutes=1)
# A signal, or an error that the process cannot survive, is logged before the shutdown hooks run.
EXIT_REASON = timedelta(minutes=1)
# A job without checkpoints counts as recovered when no fault follows.
RUNS_ON = timedelta(minutes=2)
# heartbeat.timeout is 50 s; many raise it.
HEARTBEAT = timedelta(minutes=5)
# taskmanager.registration.timeout.
REGISTRATION = timedelta(minutes=5)
# TaskManagers look for the master of their job while the JobManager is away, and a while longer.
MASTER_SOUGHT = timedelta(minutes=5)
# A fault of the cluster, such as a lost TaskManager, precedes its effects by a heartbeat timeout.
CLUSTER_LEAD = timedelta(minutes=5)
# What the timeline of an incident shows before its first and after its last fault.
LEAD_IN = timedelta(minutes=10)
LEAD_OUT = timedelta(minutes=5)
# A job showed that it ran before the JobManager was killed.
RAN_BEFORE_KILL = timedelta(minutes=10)
# A job that was well since a fault did not fail of it: memory leaks and full disks that come back
# show their own signs again.
WELL_FOR = timedelta(hours=1)
# Logs of one deployment are shipped and read up to so late.
LATE = timedelta(hours=1)
# slot.request.timeout is 5 minutes; a request for a TaskManager that nobody misses is forgotten.
SLOTS_MISSED = timedelta(hours=1)
# A job that is well completes a checkpoint, or ends.
WELL_WITHIN = timedelta(hours=6)
# Without a fault an episode is over.  Longer than restart delays and hourly trouble, shorter than a
# day: trouble that comes back nightly is an episode each night.
OVER_AFTER = timedelta(hours=6)
