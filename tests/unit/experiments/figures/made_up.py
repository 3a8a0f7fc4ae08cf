"""Runs of the figures' studies that never ran: rows as the aggregation system leaves them, with made-up values."""

from __future__ import annotations

from pathlib import Path

from gradbed.experiments.results.run_folder import RunFiles, RunFolder, TrialRecord
from gradbed.experiments.results.study_results import StudyResults, load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import Study
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.make_figures import studies_of
from gradbed.experiments.study.running.runner import TrialSpec, plan, write_description
from gradbed.experiments.systems.aggregation.system import AggregationConfiguration

SCALE = Scale(0.1)
LINK_BPS = 10_000_000
FRAGMENTS = 100
VERDICTS = ("valid", "valid", "degraded", "invalid")


def made_up_run(number: int, folder: Path) -> tuple[Study, StudyResults]:
    """The study of a figure in its quick form, and the results of a run in which every place of the sweep has a
    throughput of its own."""
    study = load_study(studies_of("aggregation")[number], quick=True)
    planned = plan(study, SCALE)
    run = RunFolder(folder, study.name)
    write_description(run, study, planned, SCALE)
    files = RunFiles(run.path)
    for index, item in enumerate(planned):
        files.write(_stored(item, index))
    return study, load_results(run.path)


def _stored(item: TrialSpec, index: int) -> TrialRecord:
    configuration = item.configuration
    assert isinstance(configuration, AggregationConfiguration)
    share = 0.2 + 0.6 * (index % 7) / 7
    workload = configuration.workload
    has_server = workload.exchange == "server"
    bound = 0.9 * LINK_BPS if has_server else None
    row = {
        "throughput_bps": share * LINK_BPS,
        "wire_throughput_bps": share * LINK_BPS,
        "throughput_bps_normalised": share,
        "bound_bps": bound if workload.jobs == 1 else None,
        "bound_bps_normalised": 0.9 if has_server and workload.jobs == 1 else None,
        "packet_bound_bps": bound if workload.jobs == 1 else None,
        "round_time_s": 0.1 / share,
        "mean_round_time_s": 0.1 / share,
        "byte_hops": 1e6 * workload.workers,
        "resends": 3.0,
        "fairness": 0.95,
        "accuracy": 0.9,
        "clock": "real",
        "scale_factor": SCALE.factor,
        "link_rate_bps": LINK_BPS,
        "verdict": VERDICTS[index % len(VERDICTS)],
        "failures": "",
    }
    jobs = [
        {"job": job, "throughput_bps": share * LINK_BPS, "bound_bps": bound, "gradient_bytes": 50_000}
        for job in range(1, workload.jobs + 1)
    ]
    rounds = [
        {
            "job": 1,
            "round": number,
            "round_time_s": 0.1 / share,
            "accuracy": min(0.95, 0.1 + 0.05 * number),
            "digest": "a column of the system's own",
        }
        for number in range(workload.rounds)
    ]
    events = [{"completed": workload.jobs * workload.rounds * FRAGMENTS}]
    return TrialRecord(item.digest, item.seed, row, {"jobs": jobs, "rounds": rounds, "events": events}, {}, [])
