"""What does privacy cost on *my* model? Rounds of training in this process."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from . import _sidecar
from ._declared import Declared
from .accounting import Claim
from .arrays import Arrays, Structure
from .attempts import Attempts, not_finite, warn
from .errors import ConfigError
from .frames import is_frame
from .frames import rows as positional
from .job import _parts
from .records import Records, units, warn_of
from .settled import Settled
from .training import Rows, rows_of


@dataclass
class Simulation:
    """The outcome of a simulation.

    Attributes:
        job: what was tried.
        explanation: in sentences, what it declares.
        spent: what the rounds spend; ``None`` without noise.
        model: the last model of the private run.
        clear_model: the last model of the run in the clear.
        scores: of the private run, what ``evaluate`` returned after each sum.
        clear_scores: the same of the run in the clear.
        std_dev: of the noise in each number of a mean.
    """

    job: Declared
    explanation: tuple[str, ...]
    spent: Claim | None
    model: Any
    clear_model: Any
    std_dev: float
    scores: list[float] = field(default_factory=list)
    clear_scores: list[float] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """By how much the last score of the private run is below that in the clear.

        Raises:
            ConfigError: there are no scores, since ``simulate`` was given no ``evaluate``.
        """
        if not self.scores:
            raise ConfigError("there are no scores", kind="config", field="evaluate",
                              advice="give simulate evaluate, a function that scores a model")
        return self.clear_scores[-1] - self.scores[-1]

    def __str__(self) -> str:
        lines = list(self.explanation)
        if self.spent is not None:
            lines.append(f"spent {self.spent}")
        if self.scores:
            lines.append(f"score {self.scores[-1]:.4f} private, {self.clear_scores[-1]:.4f} in the "
                         f"clear: privacy costs {self.cost:+.4f}")
        else:
            lines.append("no score: simulate was given no evaluate, a function that scores a model")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show scores by round as a figure in a notebook."""
        import html

        text = html.escape(str(self)).replace("\n", "<br>")
        if not self.scores:
            return f"<p>{text}</p>"
        every = [*self.scores, *self.clear_scores]
        low, high = min(every), max(every)
        width, height = 480, 160

        def line(values: Sequence[float], colour: str, name: str) -> str:
            n = max(1, len(values) - 1)
            points = " ".join(
                f"{i / n * width:.1f},{height - (v - low) / ((high - low) or 1) * height:.1f}"
                for i, v in enumerate(values)
            )
            return (f'<polyline fill="none" stroke="{colour}" points="{points}">'
                    f"<title>{name}</title></polyline>")

        return (
            f'<svg width="{width}" height="{height + 4}" role="img" aria-label="scores by round">'
            + line(self.clear_scores, "#888", "in the clear")
            + line(self.scores, "#06c", "private")
            + f"</svg><p>grey: in the clear, blue: private; {low:.3f} to {high:.3f}</p><p>{text}</p>"
        )


def simulate(
    job: Declared,
    train: Callable[[Any, Any], Any] | None,
    parties: Sequence[Any],
    model: Arrays | None = None,
    *,
    evaluate: Callable[[Any], float] | None = None,
    apply: Callable[[Any, Any], Any] | None = None,
    progress: bool = True,
) -> Simulation:
    """Train twice, in the clear and as with private sums, and compare.

    Updates are clipped, rounded, given their parties' shares of noise and added in the ring as in a
    private sum. Masks and messages are left out: they cancel, and do not change the mean. Nobody
    drops out; noise is that of the fewest parties that may be in a sum. What the job has under
    ``world`` is for ``hushsum simulate``.

    Args:
        job: what to try. It may leave out features, classes, ``privacy.submit_after`` and
            ``privacy.records``, which is then as many as ``parties`` have; and the roster, which is
            not read, if it says how many parties there are.
        train: gets the model and one of ``parties``; returns an update of the model's structure, or
            a tuple of update, weight and metrics. ``None`` if the job trains its model itself. What
            it raises ends the simulation. If its unit is a record, ``train`` gets some of a party's
            records, and returns their gradients, as for :func:`join`; the clear run then clips and
            draws as the private one does, with noise of a millionth of the clip. A record on which
            it raises adds nothing, and a warning names the first; if it has worked on none, what it
            raises ends the simulation.
        parties: a list with the data of each party: whatever ``train`` takes; ``(features,
            labels)`` if the job trains; with records what :func:`hushsum.rows` reads.
        model: what training begins with; ``None``: zeros, or the job's own.
        evaluate: returns a score of a model; larger is better; ``None``: there are no scores.
        apply: returns the next model from the model and the mean; ``None``: the server's rule
            of the job does.
        progress: draws a bar on standard error.
    """
    with contextlib.ExitStack() as stack:
        if is_frame(parties) or isinstance(parties, Mapping):
            raise ConfigError(
                f"a {type(parties).__name__} is not a list of parties", kind="config",
                field="parties", advice="give a list with the rows of each party")
        rows: list[int] = []
        there, privacy = 0, getattr(job, "privacy", None)
        by_record = getattr(privacy, "unit", "") == "record"
        group = privacy.group if privacy is not None else ""
        if train is None:
            own = [stack.enter_context(Rows(data)) for data in parties]
            rows = [data._identifier for data in own]
            if by_record and not group:
                there = sum(data.count for data in own)
        elif by_record:
            parties = [positional(data) for data in parties]
            there = sum(units(data, group) for data in parties)
        if by_record and privacy is not None:
            warn_of(privacy.records, there)
        clear, private = (
            Settled(job, like=model, parties=len(parties), rows=rows, clear=c, records=there)
            for c in (True, False))
        coins = private.coins
        rows_of(private.trains, parties if rows or coins else None, train, coins is not None)
        records = [Records(data, coins) for data in parties] if coins else []
        if private.trains and (model is not None or apply is not None):
            raise ConfigError(
                "the job makes its models itself", kind="config",
                field="apply" if model is None else "model", advice="leave it out",
            )
        attempts = Attempts()
        unweighted: list[int] = []  # the first party whose update had no weight, where all have
        bar = _Bar(2 * private.rounds * len(parties) if progress else 0)

        def run(settled: Settled, scores: list[float]) -> Any:
            structure, s = settled.structure, settled._sidecar
            start = [] if settled.trains else [
                _sidecar.shared(np.zeros(settled.length).data) if model is None
                else structure.blob(model)]
            trial, _ = s.call("trial.new", {"settled": settled.identifier}, start)
            following: list[_sidecar.Blob] = []  # a model that is not the rule's
            current = None
            with _sidecar.Remote(s, trial["trial"]):
                for number in range(1, settled.rounds + 1):
                    begun, (vector,) = s.call("trial.begin", trial, following)
                    for i in begun["parties"]:
                        add, vectors, update = {**trial, "party": i}, [], None
                        if train is None:
                            add["rows"] = rows[i]
                        elif records:
                            made = records[i].sum(train, settled.read(vector), structure)
                            attempts.simulated(i, records[i])
                            vectors = [_sidecar.shared(made.data)]
                        else:
                            update, weight, _ = _parts(train(settled.read(vector), parties[i]))
                            vectors = [structure.blob(update)]
                            add |= settled.weight(weight)
                            if settled.weighs and weight is None and not unweighted:
                                unweighted.append(i)
                                warn(f"the job has weights up to {settled.max_weight}, and train "
                                     "returned none: 1 is taken", RuntimeWarning)
                        try:
                            s.call("trial.add", add, vectors)
                        except ConfigError as err:
                            raise _at(i, err, structure, update) from None
                        bar.step()
                    _, made = s.call("trial.end", trial)
                    current = settled.read(made[0])
                    if apply is not None:
                        current = apply(settled.read(vector), settled.read(made[1]))
                        following = [structure.blob(current)]
                    if evaluate is not None:
                        scores.append(_score(evaluate(current)))
            return current

        # The rows are those of the parties here, and not of the job's world.
        explanation = tuple(s for s in private.explain() if not s.startswith("In a simulation "))
        out = Simulation(
            job=job, std_dev=private.std_dev,
            spent=private.spent(), model=None, clear_model=None,
            explanation=explanation,
        )
        out.clear_model = run(clear, out.clear_scores)
        out.model = run(private, out.scores)
        bar.end()
    return out


def _at(party: int, err: ConfigError, structure: Structure, update: Any) -> ConfigError:
    """Return what is wrong with the vector of a party, with the party."""
    if err.kind == "not-finite" and update is not None:
        err = not_finite(structure.not_finite(update) or "")
    return ConfigError(f"parties[{party}]: {err}", kind=err.kind, reason=err.reason,
                       advice=err.advice, field=err.field, party=party)


def _score(value: Any) -> float:
    """Return what evaluate returned, as a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"evaluate returned {value!r:.40}, which is not a number", kind="config",
                          field="evaluate", advice="return a score, larger for better models") from None


class _Bar:
    """A progress bar on standard error, if that is a terminal."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done = steps, 0
        self.live = steps > 0 and sys.stderr.isatty()

    def step(self) -> None:
        self.done += 1
        if self.live:
            part = self.done / self.steps
            print(f"\r[{'#' * int(30 * part):30}] {part:4.0%}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.live:
            print(file=sys.stderr)
