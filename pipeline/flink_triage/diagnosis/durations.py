"""The durations by which a diagnosis relates log lines to each other.

The comments state the assumptions behind the values. Some durations must not exceed others, so that
an incremental diagnosis still has the earlier lines that a rule requires.
`tests/unit/diagnosis/test_durations.py` checks these constraints.
"""

from __future__ import annotations

from datetime import timedelta

# After a refused connection, a line within this time states the purpose of the connection.
CONNECTION_ATTEMPT = timedelta(seconds=1)
# Processes log a shared fault within this time, so all its lines count as the first fault.
FIRST_FAULT = timedelta(seconds=1)
# A job logs its failure within this time after the failure of its task.
ANSWER = timedelta(seconds=2)
# Processes log the same failure at nearly the same time; their clocks may differ slightly.
FAILURE_SLACK = timedelta(seconds=2)
# Smaller clock differences cannot be distinguished from logging and message delays.
CLOCK_TOLERANCE = timedelta(seconds=2)
# Other processes may log the effects of an orderly stop before the stop, by up to this time.
STOP_EFFECT = timedelta(seconds=5)
# The processes of a cluster stop together, or one after the other with a grace period.
STOPPED_TOGETHER = timedelta(seconds=10)
# A different process may log an effect before its cause, because of its clock or its buffers.
LOG_ORDER = timedelta(seconds=30)
# A task fails within this time after its exception is logged; it may have to close files first.
TASK_FAILS = timedelta(minutes=1)
# JvmShutdownSafeguard ends the JVM 5 s after a signal; by default, Kubernetes waits 30 s.
SHUTDOWN = timedelta(minutes=1)
# A signal or a fatal error is logged within this time before the shutdown hooks run.
EXIT_REASON = timedelta(minutes=1)
# A process prints its banner and its configuration within this time.
STARTUP = timedelta(minutes=1)
# A job that has not completed a checkpoint counts as healthy after it has run for this time.
RUNS_ON = timedelta(minutes=2)
# heartbeat.timeout is 50 s by default and often increased.
HEARTBEAT = timedelta(minutes=5)
# The default value of taskmanager.registration.timeout.
REGISTRATION = timedelta(minutes=5)
# TaskManagers look for the JobMaster while the JobManager is unavailable, and for some time
# afterwards.
MASTER_SOUGHT = timedelta(minutes=5)
# A cluster fault, such as a lost TaskManager, precedes its effects by up to a heartbeat timeout.
CLUSTER_LEAD = timedelta(minutes=5)
# The timeline of an incident starts LEAD_IN before its first fault and ends LEAD_OUT after its
# last.
LEAD_IN = timedelta(minutes=10)
LEAD_OUT = timedelta(minutes=5)
# A killed JobManager is reported only if a job ran within this time before the next banner.
RAN_BEFORE_KILL = timedelta(minutes=10)
# Faults are not attributed to a later failure if a checkpoint completed and more than this time
# passed before the next fault. A recurring problem, such as a full disk, causes new faults.
WELL_FOR = timedelta(hours=1)
# New events may be older than the last event by up to this time, because logs are shipped with a
# delay. Older events require a full diagnosis.
LATE = timedelta(hours=1)
# An unanswered request for a TaskManager is dropped after this time. By default,
# slot.request.timeout is 5 minutes.
SLOTS_MISSED = timedelta(hours=1)
# A healthy job completes a checkpoint, or ends, within this time.
WELL_WITHIN = timedelta(hours=6)
# An episode is over after this time without a fault. The time is longer than restart delays and the
# interval of hourly failures. It is shorter than a day, so that a failure that recurs every night
# is one episode per night.
OVER_AFTER = timedelta(hours=6)
# Changes are listed only if the last start is at most this much older than the failure. After an
# earlier start, the changed setup has already worked for a day.
CHANGED_WITHIN = timedelta(days=1)
