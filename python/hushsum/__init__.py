"""Private sums, and honest epsilon, for Python.

Parties learn the mean of their vectors and nothing else, with noise that keeps each of
them within a declared budget::

    plan = hushsum.Plan("demo", rounds=10, length=1000, clip=1.0,
                        noise="discrete-gaussian", epsilon=8)
    print(hushsum.epsilon("gaussian", noise_multiplier=1, rate=0.01, rounds=10000, delta=1e-6))

The work is done by the library's own program, which runs beside this process as long as
that does; see ``docs/sidecar.md`` of the project.
"""

from .accounting import Calibration, Interval, Ledger, calibrate, delta, epsilon
from .arrays import Arrays, Structure, Weighting
from .audit import audit_one_run, audit_scores
from .errors import (
    BudgetError,
    ConfigError,
    Error,
    MessageError,
    PlanError,
    ProcessError,
    RequestError,
    SidecarError,
    StateError,
    TooFewError,
)
from .job import Coordinator, Progress, join
from .noise import sample_noise
from .party import Mean, Party, Server
from .plan import Identity, Plan, Settled
from .simulation import Simulation, simulate

__version__ = "0.1.0"

__all__ = [
    "Arrays", "BudgetError", "Calibration", "ConfigError", "Coordinator", "Error", "Identity",
    "Interval", "Ledger", "Mean", "MessageError", "Party", "Plan", "PlanError", "ProcessError",
    "Progress", "RequestError", "Server", "Settled", "SidecarError", "Simulation", "StateError",
    "Structure", "TooFewError", "Weighting", "audit_one_run", "audit_scores", "calibrate", "delta",
    "epsilon", "join", "sample_noise", "simulate",
]
