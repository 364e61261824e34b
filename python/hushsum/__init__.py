"""Private sums, and honest epsilon, for Python.

Parties learn the mean of their vectors and nothing else, with noise that keeps each of
them within a declared budget::

    job = hushsum.Job.load("study.toml")
    settled = job.settle(roster)
    print(hushsum.epsilon("gaussian", noise_multiplier=1, rate=0.01, rounds=10000, delta=1e-6))

The work is done by the library's own program, which runs next to this process for as long as it
does; see ``docs/sidecar.md`` of the project. Accounting needs nothing else; parts that work on
arrays need numpy, and are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .accounting import Budget, Calibration, Claim, Ledger, calibrate, delta, epsilon
from .errors import (
    BudgetError,
    ConfigError,
    Error,
    JobError,
    MessageError,
    ProcessError,
    RequestError,
    SidecarError,
    StateError,
    StatementError,
    TooFewError,
)

if TYPE_CHECKING:
    from ._job import Job
    from .arrays import Arrays, Structure
    from .audit import audit_one_run, audit_scores
    from .frames import rows
    from .job import Coordinator, Done, Progress, join
    from .noise import sample_noise
    from .party import Mean, Party, Server
    from .settled import Identity, Settled
    from .queries import Answer, Answers, Queries, query
    from .simulation import Simulation, simulate

__version__ = "0.1.0"

_LATER = {
    **dict.fromkeys(("Arrays", "Structure"), "arrays"),
    **dict.fromkeys(("audit_one_run", "audit_scores"), "audit"),
    **dict.fromkeys(("Coordinator", "Done", "Progress", "join"), "job"),
    "Job": "_job",
    "sample_noise": "noise",
    **dict.fromkeys(("Mean", "Party", "Server"), "party"),
    **dict.fromkeys(("Identity", "Settled"), "settled"),
    **dict.fromkeys(("Answer", "Answers", "Queries", "query"), "queries"),
    "rows": "frames",
    **dict.fromkeys(("Simulation", "simulate"), "simulation"),
}

__all__ = [
    "Answer", "Answers", "Arrays", "Budget", "BudgetError", "Calibration", "Claim", "ConfigError",
    "Coordinator", "Done", "Error", "Identity", "Job", "JobError", "Ledger", "Mean", "MessageError",
    "Party", "ProcessError", "Progress", "Queries", "RequestError", "Server", "Settled",
    "SidecarError", "Simulation",
    "StateError", "StatementError", "Structure", "TooFewError", "audit_one_run", "audit_scores",
    "calibrate", "delta", "epsilon", "join", "query", "rows", "sample_noise", "simulate",
]


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'hushsum' has no attribute {name!r}")
    try:
        found = getattr(importlib.import_module("." + module, __name__), name)
    except ModuleNotFoundError as err:
        if err.name != "numpy":
            raise
        raise ModuleNotFoundError(
            f"hushsum.{name} works on arrays and needs numpy: install it; the Debian package is "
            "python3-numpy", name="numpy",
        ) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
