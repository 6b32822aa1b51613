"""Ignores replies to REST clients about a job that is unknown to the JobManager.

Open browser tabs and scripts keep polling for a job that ended long ago. No job is affected.
"""

from __future__ import annotations

from collections.abc import Sequence

from flink_triage.diagnosis.moment import Moment
from flink_triage.signatures import SignaturePack

_REST_HANDLERS = ("org.apache.flink.runtime.rest.handler.", "o.a.f.r.r.h.")


def ignore_unknown_job_requests(
    moments: Sequence[Moment], pack: SignaturePack
) -> dict[int, Moment]:
    """Remove the matches of lines in which a REST handler reports an unknown job.

    They are kept if the logs contain no lifecycle line of a process or job, because the replies are
    then the only evidence.
    """
    unknown = pack.with_meaning("job-unknown")
    if not any(moment.observation.event.lifecycle is not None for moment in moments):
        return {}
    return {
        index: moment.reinterpreted(())
        for index, moment in enumerate(moments)
        if any(match.signature in unknown for match in moment.observation.matches)
        and (moment.observation.event.logger or "").startswith(_REST_HANDLERS)
    }
