"""fork, multiprocessing, threads, asyncio, and how it ends."""

import asyncio
import gc
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import hushsum
from hushsum import _sidecar
from rounds import Session, close_to, identities, job


def gone(pid: int, within: float = 60) -> bool:
    """Report whether a process ends, which may take a while on a busy machine."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def work(seed: int) -> tuple[int, int, float]:
    """Hold a session in this process; return it, its sidecar and a mean."""
    keys = identities(3)
    session = Session(job(drop_out=0).settle(keys), keys.values())
    mean = session.round(lambda i: np.full(5, float(seed)))
    return os.getpid(), _sidecar.current().process, float(mean.model[0])


def test_fork() -> None:
    keys = identities(4)
    session = Session(job(drop_out=0).settle(keys), keys.values())
    ours = _sidecar.current().process
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # What the parent made is refused, and what the child makes is its own.
        status = 1
        try:
            try:
                session.parties[0].output()
            except hushsum.ProcessError as e:
                assert e.advice
                _, sidecar, mean = work(7)
                assert sidecar != ours and abs(mean - 7) < 1e-3
                del session
                gc.collect()
                os.write(write, str(sidecar).encode())
                status = 0
        finally:
            os._exit(status)
    os.close(write)
    theirs = int(os.read(read, 100))
    os.close(read)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gone(theirs)
    # The parent goes on as if nothing had been.
    assert _sidecar.current().process == ours
    assert close_to(session.round(lambda i: np.ones(5)).model, 1)


def test_a_child_does_not_keep_the_sidecar_alive() -> None:
    code = (
        "import os, time, hushsum\nfrom hushsum import _sidecar\n"
        "print(_sidecar.current().process, flush=True)\n"
        "child = os.fork()\nif child == 0:\n    time.sleep(600)\nprint(child, flush=True)\n"
    )
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert p.stdout is not None
    sidecar, child = int(p.stdout.readline()), int(p.stdout.readline())
    try:
        assert p.wait(60) == 0
        assert gone(sidecar) and not gone(child, 0.1)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method: str) -> None:
    _sidecar.current()
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(work, [1, 2, 3, 4], chunksize=2)
    assert [round(r[2]) for r in results] == [1, 2, 3, 4]
    sidecars = {r[1] for r in results}
    assert _sidecar.current().process not in sidecars
    assert all(gone(s) for s in sidecars)


def test_threads() -> None:
    results: dict[int, float] = {}

    def run(seed: int) -> None:
        for _ in range(3):
            results[seed] = work(seed)[2]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {i: round(v) for i, v in results.items()} == {i: i for i in range(8)}
    # One that was started by a thread outlives it.
    started: list[_sidecar.Sidecar] = []
    t = threading.Thread(target=lambda: started.append(_sidecar.Sidecar()))
    t.start()
    t.join()
    time.sleep(0.5)
    assert started[0].call("identity")[0]["public"]
    started[0].end()


def test_threads_on_one_object() -> None:
    ledger = hushsum.Ledger(epsilon=1e6)
    threads = [
        threading.Thread(
            target=lambda: [ledger.spend("gaussian", ["a"], noise_multiplier=100)
                            for _ in range(20)])
        for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    once = hushsum.epsilon("gaussian", noise_multiplier=100, rounds=80)
    assert ledger.spent("a").epsilon == once.epsilon


def test_asyncio() -> None:
    async def main() -> list[float]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        means = await asyncio.gather(*(asyncio.to_thread(work, i) for i in range(4)))
        ticking.cancel()
        assert ticks > 3  # the loop went on meanwhile
        return [m[2] for m in means]

    assert [round(m) for m in asyncio.run(main())] == [0, 1, 2, 3]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_parent(how: signal.Signals) -> None:
    before = set(os.listdir("/dev/shm"))
    code = (
        "import numpy as np, signal, time, hushsum\nfrom hushsum import _sidecar\n"
        # Whoever runs these tests in the background may have it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "i = [hushsum.Identity.generate() for _ in range(3)]\n"
        "p = hushsum.Job(name='a', rounds=1, model=hushsum.Job.Model(length=100000),"
        " parties=hushsum.Job.Parties(count=3)).settle({str(n): k for n, k in enumerate(i)})\n"
        "x = p.structure.blob(np.ones(100000))\n"
        "t, _ = _sidecar.current().call('trial.new', {'settled': p.identifier}, [x])\n"
        "_sidecar.current().call('trial.begin', t)\n"
        "_sidecar.current().call('trial.add', {**t, 'party': 0}, [x])\n"
        "print(_sidecar.current().process, flush=True)\n"
        "hushsum.calibrate('gaussian', epsilon=1, rate=0.0001, rounds=10**7)\n"
    )
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                         stderr=subprocess.DEVNULL)
    assert p.stdout is not None
    sidecar = int(p.stdout.readline())
    time.sleep(0.1)  # in the midst of a call
    p.send_signal(how)
    p.wait(60)
    assert gone(sidecar)
    assert {n for n in os.listdir("/dev/shm") if "hushsum" in n} <= before


def test_no_key_in_shared_memory() -> None:
    s = _sidecar.Sidecar()
    identity = hushsum.Identity.generate()
    assert s._memory is not None
    keys = {"a": identity, "b": hushsum.Identity.generate()}
    settled = job(drop_out=0, length=20000).settle(keys)
    session = Session(settled, keys.values())
    session.round(lambda i: np.ones(20000))
    key = os.urandom(32)
    session.parties[0].save(key)
    memory = _sidecar.current()._memory
    assert memory is not None and memory._size > 0
    held = os.pread(memory.fd, memory._size, 0)
    assert identity._seed not in held and key not in held
    assert np.ones(20000).tobytes()[:800] in held  # the test sees what is there
    s.end()


def test_a_sidecar_that_dies() -> None:
    s = _sidecar.Sidecar()
    os.kill(s.process, signal.SIGKILL)
    with pytest.raises(hushsum.SidecarError) as caught:
        for _ in range(3000):
            s.call("identity")
            time.sleep(0.02)
    assert "saved states" in caught.value.advice and not s.alive
    # A call that waits for an answer learns of it too.
    s = _sidecar.Sidecar()
    threading.Timer(0.2, os.kill, (s.process, signal.SIGKILL)).start()
    with pytest.raises(hushsum.SidecarError):
        for _ in range(1000):  # on a fast machine one may be answered before
            s.call("account.calibrate", {
                "mechanism": "gaussian", "epsilon": 1.0, "rate": 0.0001, "rounds": 10**7,
                "find": "noise_multiplier",
            })


def test_memory_is_used_again() -> None:
    s = _sidecar.current()
    m = s._memory
    assert m is not None

    def call() -> None:
        with pytest.raises(hushsum.RequestError):
            s.call("trial.add", {"trial": 10**9}, [_sidecar.Blob(1 << 20, lambda x: None)])

    call()
    size = m._size
    for _ in range(20):
        call()
    assert m._size == size
    assert sum(n for _, n in m._free) == m._size


def test_numbers_of_fork_in_threads() -> None:
    """A fork while other threads call leaves both sides whole."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            hushsum.epsilon("gaussian", noise_multiplier=1)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                ok = hushsum.epsilon("gaussian", noise_multiplier=1).epsilon > 0
                _sidecar._end()
                os._exit(0 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert hushsum.epsilon("gaussian", noise_multiplier=1).epsilon > 0


def test_a_socket(tmp_path) -> None:
    """Other languages: frames over a Unix socket, without shared memory."""
    path = tmp_path / "socket"
    process = subprocess.Popen([_sidecar.binary(), "sidecar", "--socket", str(path)])

    def call(s: socket.socket, number: int, name: str, **parameters: object) -> dict:
        header = json.dumps({"id": number, "call": name, "with": parameters}).encode()
        s.sendall(len(header).to_bytes(4, "big") + header)
        f = s.makefile("rb")
        answer = json.loads(f.read(int.from_bytes(f.read(4), "big")))
        for b in answer.get("blobs", ()):
            f.read(b["length"])
        assert answer["id"] == number
        return answer

    try:
        connections = []
        until = time.monotonic() + 60
        while len(connections) < 2:
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(str(path))
            except OSError:  # it does not listen yet
                assert time.monotonic() < until
                s.close()
                time.sleep(0.05)
                continue
            connections.append(s)
        assert path.stat().st_mode & 0o077 == 0
        for s in connections:  # side by side
            assert "result" in call(s, 1, "hello", version=4)
            assert len(call(s, 2, "identity")["result"]["public"]) == 64
        answer = call(connections[0], 3, "account.epsilon", mechanism="gaussian",
                      noise_multiplier=1)
        want = hushsum.epsilon("gaussian", noise_multiplier=1)
        assert answer["result"] == {"claim": want.form, "words": str(want)}
        # What is no frame ends the one connection, and says why.
        connections[1].sendall(b"GET / HTTP/1.1\r\n")
        f = connections[1].makefile("rb")
        refused = json.loads(f.read(int.from_bytes(f.read(4), "big")))
        assert refused["error"]["kind"] == "frame" and f.read() == b""
        assert "result" in call(connections[0], 4, "identity")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, 130)
