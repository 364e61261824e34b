"""Accounting for a run of DP-SGD as Opacus has them: what it spends, how much noise keeps a
budget, and a ledger that stops in time.

    python3 python/examples/accounting.py
"""

from __future__ import annotations

import math

import hushsum


def main() -> None:
    rows, batch, epochs, delta = 60_000, 256, 15, 1e-5
    sample_rate, steps = batch / rows, math.ceil(rows / batch) * epochs

    # In Opacus: privacy_engine.get_epsilon(delta), which is an estimate.
    spent = hushsum.epsilon("gaussian", noise_multiplier=1.1, sample_rate=sample_rate,
                            steps=steps, delta=delta)
    print(f"noise multiplier 1.1, {epochs} epochs: {spent}")

    # In Opacus: get_noise_multiplier(target_epsilon, target_delta, sample_rate, epochs).
    found = hushsum.calibrate("gaussian", target_epsilon=3.0, target_delta=delta,
                              sample_rate=sample_rate, steps=steps)
    print(f"noise multiplier {found.noise_multiplier:.4f} keeps epsilon 3: {found.spent}")

    # A ledger refuses the epoch that would overspend, before it is run.
    ledger = hushsum.Ledger(epsilon=3.0, delta=delta)
    for epoch in range(100):
        try:
            ledger.spend("gaussian", ["training"], noise_multiplier=1.1, sample_rate=sample_rate,
                         steps=math.ceil(rows / batch))
        except hushsum.BudgetError as err:
            print(f"after {epoch} epochs: {err}")
            break
    assert ledger.spent("training").within(ledger.budget("training"))
    print(f"spent {ledger.spent('training')}")


if __name__ == "__main__":
    main()
