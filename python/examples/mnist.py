"""A convolutional network of PyTorch on MNIST: parties in processes of their own, and
messages over plain queues. hushsum.Party and hushsum.Server do not mind who carries them.

    HUSHSUM_DATA=… python3 python/examples/mnist.py [--rounds 6] [--parties 5]
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
from typing import Any

import numpy as np
import torch
from torch import nn

import hushsum
from data import folder


def images(name: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images, shape (count, 1, 28, 28), and labels."""
    at = folder("mnist")
    with gzip.open(at / f"{name}-images-idx3-ubyte.gz") as f:
        x = np.frombuffer(f.read(16 + 784 * count), np.uint8, offset=16)
    with gzip.open(at / f"{name}-labels-idx1-ubyte.gz") as f:
        y = np.frombuffer(f.read(8 + count), np.uint8, offset=8)
    pixels = torch.from_numpy(x.astype(np.float32).reshape(-1, 1, 28, 28) / 255 - 0.13)
    return pixels, torch.from_numpy(y.astype(np.int64))


def network() -> nn.Module:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(400, 10),
    )


def loaded(model: dict[str, Any]) -> nn.Module:
    """Return the network with the weights of a model."""
    net = network()
    net.load_state_dict({k: torch.from_numpy(np.asarray(v)) for k, v in model.items()})
    return net


def party(
    job: hushsum.Job, roster: list[tuple[str, str]], identity: hushsum.Identity,
    rows: slice, inbox: Any, outbox: Any,
) -> None:
    """One party: answer messages, and train when a round begins."""
    x, y = images("train", rows.stop)
    x, y = x[rows], y[rows]
    start = network().state_dict()
    settled = job.settle(roster, like=start)
    own = hushsum.Party(settled, identity)
    outbox.put((own.index, own.announce))
    while (message := inbox.get()) is not None:
        kind, body = message
        if kind == "broadcast":
            broadcast = body
            continue
        answer = own.receive(body)
        if answer is not None:
            outbox.put((own.index, answer))
        if own.due is None:
            continue
        model = own.model(broadcast)
        net = loaded(model)
        step = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for batch in torch.randperm(len(y)).split(50):
            step.zero_grad()
            nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
            step.step()
        trained = net.state_dict()
        update = {k: trained[k].numpy() - model[k] for k in model}
        outbox.put((own.index, own.submit(broadcast, update)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--parties", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1000, help="of each party")
    a = parser.parse_args()
    model: dict[str, Any] = network().state_dict()
    keys = {f"party{i}": hushsum.Identity.generate() for i in range(a.parties)}
    job = hushsum.Job(
        name="mnist", rounds=a.rounds, privacy=hushsum.Job.Privacy(clip=5.0),
        model=hushsum.Job.Model(length=sum(v.numel() for v in model.values())),
        parties=hushsum.Job.Parties(count=a.parties, drop_out=0.2),
        sum=hushsum.Job.Sum(adversary="curious"),
    )
    settled = job.settle(keys, like=model)
    print(*settled.explain(), sep="\n")

    spawn = multiprocessing.get_context("spawn")
    inboxes, outbox = [spawn.Queue() for _ in keys], spawn.Queue()
    processes = [
        spawn.Process(target=party, args=(job, settled.roster, key,
                                          slice(i * a.rows, (i + 1) * a.rows), inboxes[i], outbox))
        for i, key in enumerate(keys.values())
    ]
    for p in processes:
        p.start()

    server = hushsum.Server(settled)

    def collect() -> None:
        while server.missing:
            index, message = outbox.get(timeout=120)
            server.receive(index, message)

    def step(messages: list[tuple[int, bytes]]) -> None:
        for to, message in messages:
            inboxes[to].put(("message", message))
        collect()

    collect()  # the announcements
    step(server.keys())
    step(server.members())
    x, y = images("t10k", 2000)
    for round in range(a.rounds):
        broadcast, messages = server.begin(model)
        for inbox in inboxes:
            inbox.put(("broadcast", broadcast))
        step(messages)
        step(server.survivors())
        step(server.certificate())
        mean = server.sum()
        model = {k: np.asarray(model[k]) + mean.model[k] for k in model}
        with torch.no_grad():
            right = (loaded(model)(x).argmax(1) == y).float().mean().item()
        print(f"round {round + 1}: {len(mean.parties)} parties, accuracy {right:.3f}", flush=True)
    for inbox in inboxes:
        inbox.put(None)
    for p in processes:
        p.join()
    assert right > 0.8


if __name__ == "__main__":
    main()
