"""scikit-learn on the Adult census table: ten parties, each a process of its own, train a
logistic regression in a federation of the service, through `hushsum.join`, with a budget
that every party keeps. The server is hushsumd, on this machine.

    HUSHSUM_DATA=… python3 python/examples/adult.py [--rounds 8] [--epsilon 8]
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import hushsum
from data import folder as data_folder
from hushsum import federation

NUMBERS = [0, 4, 10, 11, 12]  # age, years of education, capital gain and loss, hours
NAMES = [1, 5, 6, 7, 8, 9]


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return standardised and one-hot features, shape (rows, features), and labels 0, 1."""
    rows = []
    for name in ("adult.data", "adult.test"):
        for line in (data_folder("adult") / name).read_text().splitlines():
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
    c.coef_, c.intercept_ = model["coef"].astype(float), model["intercept"].astype(float)
    return c


def party(
    site: dict[str, str], folder: Path, name: str, x: np.ndarray, y: np.ndarray
) -> None:
    """Take part with one's own rows, which stay here. This is all that a party writes."""

    def train(model: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], None, dict[str, float]]:
        c = classifier(model)
        accuracy = c.score(x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            c.partial_fit(x, y, classes=[0, 1])
        update = {"coef": c.coef_ - model["coef"], "intercept": c.intercept_ - model["intercept"]}
        return update, None, {"accuracy": accuracy}

    model = hushsum.join(
        site["door"], identity=hushsum.Identity.load(folder / f"{name}.pem"), train=train,
        roster=folder / "roster.txt", fingerprint=site["fingerprint"], folder=folder / name,
        accept=True, progress=lambda p: print(name, p.text))
    np.savez(folder / f"{name}.npz", **model)


def serve(folder: Path, features: int, rounds: int, epsilon: float) -> subprocess.Popen[str]:
    """Start a server of the service with a federation, in place of an operator's."""
    (folder / "federation.toml").write_text(f"""
name = "adult"
rounds = {rounds}

[parties]
roster = "roster.txt"
drop_out = 0.2

[sum]
adversary = "curious"

[privacy]
noise = "discrete-gaussian"
epsilon = {epsilon}
delta = 1e-5
clip = 1.0

[[model.tensor]]
name = "coef"
shape = [1, {features}]

[[model.tensor]]
name = "intercept"
shape = [1]
""")
    return subprocess.Popen(
        [federation._program(), "serve", "--folder", str(folder / "node"), "--listen",
         "127.0.0.1:0", "--admin", "127.0.0.1:0", "--federation", str(folder / "federation.toml"),
         "--log", "error"],
        stdout=subprocess.PIPE, text=True)


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
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        roster = ""
        names = [f"hospital{i}" for i in range(a.parties)]
        for name in names:
            identity = hushsum.Identity.generate()
            identity.save(folder / f"{name}.pem")
            roster += f"{name} {identity.public}\n"
        (folder / "roster.txt").write_text(roster)
        server = serve(folder, x.shape[1], a.rounds, a.epsilon)
        site = {}
        try:
            assert server.stdout is not None
            for line in server.stdout:
                site[line.split()[0]] = line.split()[1]
                if "federation" in site:
                    break
            spawn = multiprocessing.get_context("spawn")
            processes = [spawn.Process(target=party, args=(site, folder, n, x[rows], y[rows]))
                         for n, rows in zip(names, own)]
            for p in processes:
                p.start()
            for p in processes:
                p.join()
        finally:
            server.terminate()
            server.wait()
        models = [dict(np.load(folder / f"{n}.npz")) for n in names]
    assert all(np.array_equal(m["coef"], models[0]["coef"]) for m in models)
    accuracy = classifier(models[0]).score(x[test], y[test])
    print(f"{a.parties} parties, {a.rounds} rounds, epsilon {a.epsilon}: accuracy {accuracy:.3f} on "
          f"{len(test):,} rows")
    assert accuracy > 0.77  # who says no to all is right for 0.752


if __name__ == "__main__":
    main()
