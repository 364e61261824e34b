"""Taking part in a federation of the service: hushsumd's party, with a training function."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import numpy as np

from . import _sidecar, tensors
from .arrays import Structure, as_array
from .attempts import Attempts, not_finite
from .errors import ConfigError, Error, SidecarError
from .frames import rows as positional
from .records import Coins, Records
from .settled import Identity
from .training import rows_of, working


def _program() -> str:
    """Return the path of hushsumd: HUSHSUMD_BINARY, the wheel's, or PATH's."""
    given = os.environ.get("HUSHSUMD_BINARY")
    sidecar = Path(_sidecar.binary())
    neighbour = sidecar.with_name("hushsumd" + sidecar.suffix)
    found = given or (
        str(neighbour) if os.access(neighbour, os.X_OK) else shutil.which("hushsumd"))
    if found and os.access(found, os.X_OK):
        return found
    raise SidecarError(
        "there is no hushsumd program",
        advice="install the wheel, which has it, or set HUSHSUMD_BINARY",
    )


def join(
    url: str,
    *,
    identity: Identity,
    train: Callable[..., Any],
    rows: Any,
    roster: str | Path,
    fingerprint: str | None,
    federation: str | None,
    folder: str | Path,
    policy: str | Path | None,
    accept: bool,
    least_number: int,
    spent: int,
    tell: Callable[[int, str], None],
) -> dict[str, np.ndarray]:
    """Run hushsumd's party, and train in this process when it asks. See hushsum.join."""
    if not hasattr(socket, "AF_UNIX"):
        raise Error("Python has no Unix sockets on this system", kind="federation",
                    advice="run hushsumd join with --train and a command")
    rows = None if rows is None else positional(rows)
    folder = Path(folder).absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        private = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hushsum-")))
        identity.save(private / "identity.pem")
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(private / "train"))
        listener.listen(1)
        listener.settimeout(0.2)
        relay = [sys.executable, "-S", "-E", str(Path(__file__).with_name("_relay.py")),
                 str(private / "train")]
        command = [_program(), "join", "--server", url, "--identity",
                   str(private / "identity.pem"), "--roster", str(Path(roster).absolute()),
                   "--folder", str(folder), "--train", shlex.join(relay), "--log", "error",
                   "--out", str(private / "model.safetensors")]
        for flag, value in (("--fingerprint", fingerprint), ("--federation", federation),
                            ("--policy", policy and str(Path(policy).absolute())),
                            ("--least-number", least_number), ("--spent", spent)):
            if value:
                command += [flag, str(value)]
        if accept:
            command.append("--accept")
        if setpriv := shutil.which("setpriv"):  # so that it ends with this process
            command = [setpriv, "--pdeathsig", "TERM", *command]
        process = subprocess.Popen(command, stdout=None if not accept else subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, process_group=0 if accept else None)
        stack.callback(_end, process)
        attempts = Attempts(drawn=rows is not None)
        while process.poll() is None:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                _serve(connection, train, rows, tell, attempts)
        assert process.stderr is not None
        said = process.stderr.read().decode(errors="replace").strip()
        if process.returncode != 0:
            reason = said.splitlines()[-1] if said else f"it ended with {process.returncode}"
            reason = reason.removeprefix("hushsumd: ")
            if _ABSENT in reason:
                attempts.end(Error(reason, kind="absent", advice="see what its rounds reported, and "
                                   "correct what the function returns"))
            attempts.end(Error(reason, kind="federation"))
        attempts.end()
        last = tensors.read((private / "model.safetensors").read_bytes())
    return last


#: what ``hushsumd join`` says of a party that was in no sum, or only with zeros
_ABSENT = "this party had nothing to submit in any round"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stderr is not None:
        process.stderr.close()


def _serve(
    connection: socket.socket, train: Callable[..., Any], rows: Any,
    tell: Callable[[int, str], None], attempts: Attempts,
) -> None:
    """Train once, from the files of a round to the files of an update."""
    folder = connection.makefile("rb").readline().decode().rstrip("\n")
    if not folder:  # the round was over before its caller said where its files are
        return
    work = Path(folder)
    about = json.loads((work / "round.json").read_text())
    round, records = about["round"], None
    try:
        model = tensors.read((work / "model.safetensors").read_bytes())
        rows_of(False, rows, train, "coins" in about)
        doubles = Structure({name: np.zeros(a.shape) for name, a in model.items()})
        if "coins" in about:
            records = Records(rows, Coins(about["coins"]))
            made = doubles.read(records.sum(train, model, doubles))
        else:
            made = working(train)(model, round)
        update, metrics = _parts(made)
        path = doubles.not_finite(update)  # and it raises where the structure is another
        if path is not None:
            raise not_finite(path)
        arrays = {name: as_array(update[name]) for name in model}
        (work / "update.safetensors").write_bytes(tensors.write(arrays))
        if metrics:
            (work / "metrics.json").write_text(json.dumps(metrics))
    except Exception as err:  # of the training function: an absence, or zeros with noise
        tell(round, f"absent: {attempts.said(err)}")
        with contextlib.suppress(OSError):
            connection.sendall(b"failed\n")
        attempts.failed(round, err)
        return
    with contextlib.suppress(OSError):  # the round may be over
        connection.sendall(b"ok\n")
    if records is not None:
        attempts.summed(round, records, lambda what: tell(round, what))
        return
    attempts.succeeded()
    tell(round, "trained")


def _parts(result: Any) -> tuple[Any, dict[str, float]]:
    if not isinstance(result, tuple):
        return result, {}
    if len(result) != 3:
        raise ConfigError(
            f"the training function returned {len(result)} values", kind="config", field="train",
            advice="return an update, or an update, its weight and metrics",
        )
    update, weight, metrics = result
    if weight not in (None, 1):
        raise ConfigError(
            "the means of federations are not weighted", kind="config", field="weight",
            advice="return 1 or None as the weight",
        )
    return update, {k: float(metrics[k]) for k in ("loss", "accuracy") if k in metrics}
