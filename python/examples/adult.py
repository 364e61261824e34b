"""scikit-learn on the Adult census table: ten parties, each a process of its own, train a
logistic regression through `hushsum.join`, with a budget that every party keeps.

    HUSHSUM_DATA=… python3 python/examples/adult.py [--rounds 8] [--epsilon 8]
"""

from __future__ import annotations

import argparse
import multiprocessing
import warnings

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import hushsum
from data import folder

NUMBERS = [0, 4, 10, 11, 12]  # age, years of education, capital gain and loss, hours
NAMES = [1, 5, 6, 7, 8, 9]


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return standardised and one-hot features, shape (rows, features), and labels 0, 1."""
    rows = []
    for name in ("adult.data", "adult.test"):
        for line in (folder("adult") / name).read_text().splitlines():
            fields = [f.strip().rstrip(".") for f in line.split(",")]
            if len(fields) == 15 and "?" not in fields:
                rows.append(fields)
    table = np.array(rows)
    numbers = np.log1p(table[:, NUMBERS].astype(float))
    x = np.hstack([StandardScaler().fit_transform(numbers) / 3,
                   OneHotEncoder(sparse_output=False).fit_transform(table[:, NAMES])])
    return x, (table[:, 14] == ">50K").astype(int)


def classifier(model: dict[str, np.ndarray]) -> SGDClassifier:
    """Return scikit-learn's classifier with the weights of a model."""
    c = SGDClassifier(loss="log_loss", alpha=1e-4, learning_rate="constant", eta0=0.05,
                      random_state=0)
    c.classes_ = np.array([0, 1])
    c.coef_, c.intercept_ = model["coef"].copy(), model["intercept"].copy()
    return c


def party(
    url: str, coordinator: str, plan: hushsum.Plan, roster: list[tuple[str, str]],
    identity: hushsum.Identity, x: np.ndarray, y: np.ndarray,
) -> None:
    """Take part with one's own rows, which stay here."""
    model = {"coef": np.zeros((1, x.shape[1])), "intercept": np.zeros(1)}

    def train(model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        c = classifier(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            c.partial_fit(x, y, classes=[0, 1])
        return {"coef": c.coef_ - model["coef"], "intercept": c.intercept_ - model["intercept"]}

    hushsum.join(url, settled=plan.settle(roster, like=model), identity=identity,
                 coordinator=coordinator, train=train)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=8.0)
    a = parser.parse_args()
    x, y = load()
    order = np.random.default_rng(1).permutation(len(y))
    test, rest = order[: len(y) // 4], order[len(y) // 4 :]
    own = np.array_split(rest, a.parties)

    model = {"coef": np.zeros((1, x.shape[1])), "intercept": np.zeros(1)}
    keys = {f"hospital{i}": hushsum.Identity.generate() for i in range(a.parties)}
    plan = hushsum.Plan(
        "adult", rounds=a.rounds, length=x.shape[1] + 1, clip=2.0, noise="discrete-gaussian",
        epsilon=a.epsilon, drop_out=0.2, adversary="curious",
    )
    settled = plan.settle(keys, like=model)
    print(settled.explain())

    coordinator = hushsum.Identity.generate()
    job = hushsum.Coordinator(settled, identity=coordinator, model=model)
    spawn = multiprocessing.get_context("spawn")
    processes = [
        spawn.Process(target=party, args=(job.url, coordinator.public, plan, settled.roster, key,
                                          x[rows], y[rows]))
        for key, rows in zip(keys.values(), own)
    ]
    for p in processes:
        p.start()
    model = job.run(progress=lambda p: print(p.text) if "summed" in p.text else None)
    for p in processes:
        p.join()
    accuracy = classifier(model).score(x[test], y[test])
    print(f"accuracy {accuracy:.3f} on {len(test):,} rows, epsilon {settled.spent()}")
    assert accuracy > 0.8


if __name__ == "__main__":
    main()
