"""What does privacy cost on *my* model? Rounds of training in this process."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Sequence

import numpy as np

from . import _sidecar
from .accounting import Interval
from .arrays import Arrays, Structure, Weighting
from .errors import ConfigError
from .plan import Identity, Plan, Settled
from .party import digest_of, write_broadcast


@dataclass
class Simulation:
    """What a simulation has come to.

    Attributes:
        plan: the plan that was tried out.
        explanation: in words, what it means for a party.
        epsilon: what the rounds spend of every party; ``None`` without noise.
        model: the last model of the private run.
        clear_model: the last model of the run in the clear.
        scores: of the private run, what ``evaluate`` returned after each round.
        clear_scores: the same of the run in the clear.
        std_dev: of the noise in each number of a mean.
    """

    plan: Plan
    explanation: str
    epsilon: Interval | None
    model: Any
    clear_model: Any
    std_dev: float
    scores: list[float] = field(default_factory=list)
    clear_scores: list[float] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """By how much the last score of the private run is below that in the clear."""
        return self.clear_scores[-1] - self.scores[-1]

    def __str__(self) -> str:
        lines = [self.explanation]
        if self.scores:
            lines.append(f"score {self.scores[-1]:.4f} private, {self.clear_scores[-1]:.4f} in the "
                         f"clear: privacy costs {self.cost:+.4f}")
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
    train: Callable[[Any, Any], Any],
    parties: Sequence[Any],
    model: Arrays,
    *,
    rounds: int,
    clip: float,
    noise: str | None = "discrete-gaussian",
    epsilon: float = 8.0,
    delta: float = 1e-5,
    drop_out: float = 0.0,
    colluders: int = 0,
    bits: int = 0,
    max_weight: float | None = None,
    evaluate: Callable[[Any], float] | None = None,
    apply: Callable[[Any, Any], Any] | None = None,
    progress: bool = True,
) -> Simulation:
    """Train twice, in the clear and as private sums would have it, and compare.

    Updates are clipped, rounded, given their parties' shares of noise and added in the ring
    as in a private sum. Masks and messages are left out: they cancel, and change nothing of
    the mean. Noise is calibrated for the fewest parties that may be in a sum.

    Args:
        train: gets the model and one of ``parties``; returns an update of the model's
            structure, or a tuple of update, weight and metrics.
        parties: the data of each party, whatever ``train`` takes.
        model: what training begins with.
        rounds, clip, noise, epsilon, delta, drop_out, colluders, bits: as in
            :class:`Plan`; ``noise=None`` shows what clipping and rounding cost alone.
        max_weight: weights above it count as it; ``None``: updates have no weights.
        evaluate: returns a score of a model, larger being better.
        apply: returns the next model from the model and the mean; ``None``: their sum.
        progress: draws a bar on standard error.
    """
    structure = Structure(model)
    weighting = None if max_weight is None else Weighting(max_weight)
    plan = Plan(
        "simulation", rounds=rounds, length=structure.size + (weighting is not None), clip=clip,
        bits=bits, noise=noise, epsilon=epsilon if noise else 0.0, delta=delta if noise else 0.0,
        drop_out=drop_out, colluders=colluders, adversary="curious",
    )
    roster = [(f"party{i}", Identity.generate()) for i in range(len(parties))]
    settled = plan.settle([(n, k.public) for n, k in roster], like=model, weighting=weighting)
    bar = _Bar(2 * rounds * len(parties) if progress else 0)

    def run(mean: Callable[[Any, int], Any], scores: list[float]) -> Any:
        x = np.empty(structure.size)
        structure.write(model, x)
        current = structure.read(x)
        for r in range(1, rounds + 1):
            update = mean(current, r)
            current = _sum(structure, current, update) if apply is None else apply(current, update)
            if evaluate is not None:
                scores.append(float(evaluate(current)))
        return current

    def clear(current: Any, _: int) -> Any:
        total, weights = np.zeros(structure.size), 0.0
        for data in parties:
            update, weight = _update(train(current, data), weighting)
            x = np.empty(structure.size)
            structure.write(update, x)
            total, weights = total + weight * x, weights + weight
            bar.step()
        return structure.read(total / (weights or 1.0))

    def private(current: Any, r: int) -> Any:
        s = settled._sidecar
        broadcast = write_broadcast(settled, r, current)
        trial, _ = s.call("trial.new", {"settled": settled.identifier,
                                        "broadcast": digest_of(broadcast)})
        with _sidecar.Remote(s, trial["trial"]):
            for data in parties:
                update, weight = _update(train(current, data), weighting)
                s.call("trial.add", trial, [settled.vector(update, weight if weighting else None)])
                bar.step()
            _, (mean,) = s.call("trial.mean", {**trial, "numbers": settled.mean_numbers},
                                writable=True)
        return settled.model(mean, len(parties))[0]

    out = Simulation(
        plan=plan, explanation=settled.explain(), epsilon=settled.spent() if noise else None,
        model=None, clear_model=None, std_dev=settled.std_dev,
    )
    out.clear_model = run(clear, out.clear_scores)
    out.model = run(private, out.scores)
    bar.end()
    return out


def _update(result: Any, weighting: Weighting | None) -> tuple[Any, float]:
    if not isinstance(result, tuple):
        return result, 1.0
    if len(result) != 3:
        raise ConfigError(
            f"the training function returned {len(result)} values", kind="config", field="train",
            advice="return an update, or an update, its weight and metrics",
        )
    if weighting is None:
        return result[0], 1.0
    weight = 1.0 if result[1] is None else float(result[1])
    return result[0], min(weight, weighting.max_weight)


def _sum(structure: Structure, a: Any, b: Any) -> Any:
    x, y = np.empty(structure.size), np.empty(structure.size)
    structure.write(a, x)
    structure.write(b, y)
    return structure.read(x + y)


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
