"""Plans, for jobs that began before there were declared jobs. The next release drops them."""

from __future__ import annotations

import dataclasses
import json
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import ConfigError

if TYPE_CHECKING:
    from .arrays import Arrays
    from .settled import People, Settled

_ADVERSARIES = ("cheating", "semi-malicious", "curious")


@dataclass(frozen=True)
class Plan:
    """A job as it was declared before :class:`Job`, so that it can end as it began.

    A job has a different digest, by which its states and sessions are known: a running one
    continues under its plan. Declare the next as a :class:`Job`; ``hushsum job convert`` makes one
    from a plan's file. Attributes are those that it always had.
    """

    name: str
    rounds: int
    length: int
    clip: float
    bits: int = 0
    noise: str | None = None
    epsilon: float = 0.0
    delta: float = 0.0
    drop_out: float = 0.0
    colluders: int = 0
    adversary: str = "cheating"
    classical: bool = False
    protocol: str = "pairwise"
    faults: int = 0
    covered: bool = False

    def __post_init__(self) -> None:
        if self.adversary not in _ADVERSARIES:
            raise ConfigError(f"there is no adversary {self.adversary!r}", kind="config",
                              field="adversary", advice=f"use one of {', '.join(_ADVERSARIES)}")
        warnings.warn("a Plan is for jobs that began under one: declare the next as a Job",
                      DeprecationWarning, stacklevel=3)

    @classmethod
    def parse(cls, text: str | bytes) -> "Plan":
        """Read a plan from its JSON form."""
        try:
            fields = json.loads(text)
            fields["adversary"] = _ADVERSARIES[fields.get("adversary", 0)]
            return cls(**fields)
        except (ValueError, TypeError, LookupError, AttributeError) as err:
            raise ConfigError(f"the text is not a plan's JSON: {err}", kind="config") from err

    def settle(
        self, roster: "People", *, committee: "People | None" = None, like: "Arrays | None" = None
    ) -> "Settled":
        """Work the plan out for a roster: see :meth:`Job.settle`."""
        from .settled import Settled

        return Settled(self, roster, committee=committee, like=like)

    def _settling(self) -> tuple[str, dict[str, Any], list[bytes]]:
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)
                  if getattr(self, f.name) != f.default}
        fields["adversary"] = _ADVERSARIES.index(self.adversary)
        return "plan.settle", {"plan": fields}, []
