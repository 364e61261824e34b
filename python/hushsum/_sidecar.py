"""The process next to this one, and the frames that go between the two.

One sidecar serves a process: it is started by the first call and ends with it. Threads
may call at once. After a fork the child has a sidecar of its own, from its first call on;
what the parent made stays the parent's.
"""

from __future__ import annotations

import atexit
import collections
import concurrent.futures
import contextlib
import importlib.metadata
import io
import json
import mmap
import os
import shutil
import subprocess
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Iterable, Sequence

from .errors import Error, ProcessError, RequestError, SidecarError, from_fault

VERSION = 4  # of frames and calls

_SHARE_FROM = 1 << 16  # bytes from which on arrays go through shared memory
_PAGE = mmap.PAGESIZE
_RETURN_FROM = 1 << 26  # bytes from which on memory is given back after a call


def binary() -> str:
    """Return the path of the program: HUSHSUM_BINARY, the wheel's, or PATH's."""
    given = os.environ.get("HUSHSUM_BINARY")
    if given:
        if not (os.path.isfile(given) and os.access(given, os.X_OK)):
            raise SidecarError(
                f"HUSHSUM_BINARY is {given}, which is not a program",
                advice="build it with: go build -o hushsum ./cmd/hushsum",
            )
        return given
    name = "hushsum.exe" if os.name == "nt" else "hushsum"
    own = Path(__file__).with_name("_bin") / name
    if os.access(own, os.X_OK):
        return str(own)
    found = shutil.which("hushsum")
    if found:
        return found
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        # Of a wheel that is installed, while the modules are a checkout's.
        files = importlib.metadata.distribution("hushsum")
        installed = str(files.locate_file(f"hushsum/_bin/{name}"))
        if os.access(installed, os.X_OK):
            return installed
    raise SidecarError(
        "there is no hushsum program",
        advice="install the wheel, which has it, or set HUSHSUM_BINARY",
    )


class Blob:
    """Bytes for a call, written where they are to be without a copy on the way."""

    def __init__(self, nbytes: int, write: Callable[[memoryview], None]) -> None:
        self.nbytes = nbytes
        self.write = write  # fills nbytes, at a multiple of 8


def shared(data: bytes | bytearray | memoryview) -> Blob:
    """Return a blob of bytes that go through shared memory if they are many."""
    view = memoryview(data).cast("B")

    def write(into: memoryview) -> None:
        into[:] = view

    return Blob(view.nbytes, write)


class _Memory:
    """A memfd that both processes have mapped, and what of it is in use."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("hushsum", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        import fcntl

        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self._lock = threading.Lock()
        self._size = 0
        self._map: mmap.mmap | None = None
        self._free: list[tuple[int, int]] = []  # offset and length, by offset

    def take(self, nbytes: int) -> tuple[int, int, memoryview]:
        """Return offset, length and a view of nbytes."""
        length = -(-max(nbytes, 1) // _PAGE) * _PAGE
        with self._lock:
            for i, (offset, room) in enumerate(self._free):
                if room >= length:
                    self._free[i : i + 1] = [(offset + length, room - length)] * (room > length)
                    break
            else:
                offset = self._size
                os.ftruncate(self.fd, offset + length)
                self._map = mmap.mmap(self.fd, offset + length)  # views keep the one before
                self._size = offset + length
            assert self._map is not None
            return offset, length, memoryview(self._map)[offset : offset + nbytes]

    def give(self, offset: int, length: int) -> None:
        with self._lock:
            if length >= _RETURN_FROM and self._map is not None and hasattr(mmap, "MADV_REMOVE"):
                self._map.madvise(mmap.MADV_REMOVE, offset, length)
            merged: list[tuple[int, int]] = []
            for o, n in sorted([*self._free, (offset, length)]):
                if merged and merged[-1][0] + merged[-1][1] == o:
                    merged[-1] = (merged[-1][0], merged[-1][1] + n)
                else:
                    merged.append((o, n))
            self._free = merged


class _Waiting:
    __slots__ = ("future", "regions", "writable")

    def __init__(self, regions: list[tuple[int, int]], writable: bool) -> None:
        self.writable = writable
        self.future: concurrent.futures.Future[tuple[Any, list[bytes]]] = (
            concurrent.futures.Future()
        )
        self.regions = regions

    def take_regions(self) -> list[tuple[int, int]]:
        """Return the shared memory of the call, once."""
        regions, self.regions = self.regions, []
        return regions


class Sidecar:
    """A running sidecar."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._memory: _Memory | None = None  # arrays go through the frames
        with contextlib.suppress(OSError, AttributeError):  # where there is no memfd
            self._memory = _Memory()
        command = [binary(), "sidecar", "--parent", str(self.pid)]
        passed: list[int] = []
        if self._memory is not None:
            command += ["--shared", str(self._memory.fd)]
            passed.append(self._memory.fd)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                pipesize=1 << 20,
                pass_fds=passed,
                process_group=0,  # an interrupt from the keyboard is this process's
            )
        except OSError as err:
            raise SidecarError(f"cannot start {command[0]}: {err}") from err
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        self._writing = threading.Lock()
        self._state = threading.Lock()
        self._last = 0
        self._waiting: dict[int, _Waiting] = {}
        self._unneeded: collections.deque[int] = collections.deque()
        self._ended: SidecarError | None = None
        threading.Thread(target=self._read, name="hushsum", daemon=True).start()
        try:
            self.call("hello", {"version": VERSION})
        except Error as err:
            self._process.kill()
            self._process.wait()
            raise SidecarError(
                f"{command[0]} is not a hushsum that matches this package: {err.reason}",
                advice="install one version of both: HUSHSUM_BINARY, if set, names the program",
            ) from err

    @property
    def process(self) -> int:
        """The process number of the sidecar."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._ended is None and self.pid == os.getpid()

    def call(
        self, name: str, parameters: dict[str, Any] | None = None,
        blobs: Sequence[bytes | Blob] = (), *, writable: bool = False,
    ) -> tuple[Any, list[Any]]:
        """Make a call and return its result and blobs, which are bytes, or if they are to be
        ``writable`` bytearrays. Raises what it answers with."""
        self.check()
        self._close_unneeded()
        return self._send(name, parameters or {}, blobs, writable).result()

    def check(self) -> None:
        """Raise unless this is the process that started the sidecar."""
        if self.pid != os.getpid():
            raise ProcessError(
                f"this was made in process {self.pid}, and keys do not pass to another",
                kind="process",
                advice="make it in this process; a party that is to move is saved there and "
                "loaded here",
            )

    def unneeded(self, identifier: int) -> None:
        """Have an object closed with the next call; safe to call from a finaliser."""
        self._unneeded.append(identifier)

    def _close_unneeded(self) -> None:
        while self._unneeded:
            try:
                identifier = self._unneeded.popleft()
            except IndexError:
                return
            self._send("close", {"object": identifier}, ())

    def _send(
        self, name: str, parameters: dict[str, Any], blobs: Iterable[bytes | Blob],
        writable: bool = False,
    ) -> concurrent.futures.Future[tuple[Any, list[bytes]]]:
        regions: list[tuple[int, int]] = []
        inline: list[memoryview] = []
        announced: list[dict[str, int]] = []
        try:
            for b in blobs:
                if isinstance(b, Blob):
                    region = self._region(b.nbytes)
                    if region is None:
                        room = memoryview(bytearray(b.nbytes))
                        inline.append(room)
                        announced.append({"length": b.nbytes})
                    else:
                        offset, length, room = region
                        regions.append((offset, length))
                        announced.append({"length": b.nbytes, "offset": offset})
                    b.write(room)
                else:
                    inline.append(memoryview(b))
                    announced.append({"length": len(b)})
            waiting = _Waiting(regions, writable)
            with self._state:
                if self._ended is not None:
                    raise self._ended
                self._last += 1
                identifier = self._last
            header = encode(
                {"id": identifier, "call": name, "with": parameters, "blobs": announced}
            )
        except BaseException:
            self._give(regions)
            raise
        with self._state:
            self._waiting[identifier] = waiting
        try:
            with self._writing:
                self._write(memoryview(len(header).to_bytes(4, "big") + header))
                for part in inline:
                    self._write(part)
        except OSError as err:
            self._fail(f"it does not take calls any more: {err}")
        return waiting.future

    def _region(self, nbytes: int) -> tuple[int, int, memoryview] | None:
        """Return shared memory for a blob, ``None`` for one that goes in the frame."""
        if self._memory is None or nbytes < _SHARE_FROM:
            return None
        try:
            return self._memory.take(nbytes)
        except OSError:  # files may not be so long
            return None

    def _write(self, view: memoryview) -> None:
        while view:
            n = os.write(self._in, view)
            view = view[n:]

    def _give(self, regions: list[tuple[int, int]]) -> None:
        if self._memory is not None:
            for region in regions:
                self._memory.give(*region)

    def _read(self) -> None:
        """Take answers as they come, until there are no more."""
        reason = "it has ended"
        try:
            while True:
                size = os.read(self._out, 4)
                if not size:
                    break
                size += self._exactly(4 - len(size))
                header = json.loads(self._exactly(int.from_bytes(size, "big")))
                with self._state:
                    waiting = self._waiting.get(header["id"])
                    regions = [] if waiting is None else waiting.take_regions()
                self._give(regions)  # it is answered: what it was given is free
                take = self._into if waiting is not None and waiting.writable else self._exactly
                blobs = [take(b["length"]) for b in header.get("blobs") or ()]
                with self._state:
                    waiting = self._waiting.pop(header["id"], None)
                if waiting is None:
                    if "error" in header:
                        reason = header["error"]["text"]
                    continue
                if "error" in header:
                    waiting.future.set_exception(from_fault(header["error"]))
                else:
                    waiting.future.set_result((header["result"], blobs))
        except (OSError, ValueError, KeyError) as err:
            reason = f"its answer makes no sense: {err!r}"
        if self.pid == os.getpid():
            self._fail(reason)

    def _exactly(self, n: int) -> bytes:
        """Read n bytes into the object that is returned: a BytesIO gives its own away."""
        if n == 0:
            return b""
        room = io.BytesIO()
        room.seek(n - 1)
        room.write(b"\0")
        with room.getbuffer() as view:
            self._fill(view)
        return room.getvalue()

    def _into(self, n: int) -> bytearray:
        """Read n bytes that are the caller's to change."""
        out = bytearray(n)
        self._fill(memoryview(out))
        return out

    def _fill(self, view: memoryview) -> None:
        while view:
            n = os.readv(self._out, [view])
            if n == 0:
                raise ValueError("it ends early")
            view = view[n:]

    def _fail(self, reason: str) -> None:
        with self._state:
            if self._ended is None:
                self._ended = SidecarError(
                    f"the hushsum process {self._process.pid} is gone: {reason}",
                    kind="ended",
                    advice="make new objects, and load parties and servers from saved states",
                )
            waiting, self._waiting = list(self._waiting.values()), {}
            regions = [region for w in waiting for region in w.take_regions()]
        self._give(regions)
        for w in waiting:
            w.future.set_exception(self._ended)

    def end(self) -> None:
        """End the sidecar. It forgets all that was made in it."""
        self.check()
        self._fail("it was ended")
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _after_fork(self) -> None:
        """Let go of the parent's sidecar: it ends when nobody holds its pipe."""
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        held = [self._in, self._out]
        if self._memory is not None:
            held.append(self._memory.fd)
        for fd in held:
            os.dup2(nothing, fd, inheritable=False)
        os.close(nothing)
        self._process.returncode = 0  # it is not this process's child


def encode(header: dict[str, Any]) -> bytes:
    """Return JSON, as calls have it."""
    try:
        return json.dumps(header, allow_nan=False, separators=(",", ":"), default=_plain).encode()
    except ValueError as err:
        raise RequestError(
            "a number is NaN or infinite", kind="request", advice="give finite numbers"
        ) from err


def _plain(value: Any) -> Any:
    """Return numpy's scalars as Python's own."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise RequestError(
        f"{type(value).__name__} is not a number, string or list", kind="request",
        advice="give a plain value",
    )


_lock = threading.Lock()
_current: Sidecar | None = None
_all: "weakref.WeakSet[Sidecar]" = weakref.WeakSet()


def current() -> Sidecar:
    """Return this process's sidecar, started if there is none."""
    global _current
    with _lock:
        if _current is None or not _current.alive:
            _current = Sidecar()
            _all.add(_current)
        return _current


def _forget() -> None:
    """After a fork, in the child."""
    global _current, _lock
    _lock = threading.Lock()
    _current = None
    for s in list(_all):
        s._after_fork()


def _end() -> None:
    if _current is not None and _current.alive:
        _current.end()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end)


class Remote:
    """An object that the sidecar has: a party, a server, a ledger and so on."""

    def __init__(self, sidecar: Sidecar, identifier: int) -> None:
        self._sidecar = sidecar
        self._identifier = identifier
        self._finaliser = weakref.finalize(self, sidecar.unneeded, identifier)
        self._finaliser.atexit = False

    def close(self) -> None:
        """Forget the object and erase its keys. It is closed as well when it is garbage."""
        if self._finaliser.detach() is not None:
            self._sidecar.call("close", {"object": self._identifier})

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise ProcessError(
            f"a {type(self).__name__} cannot pass to another process",
            kind="process",
            advice="make it there; a party or server that is to move is saved here and loaded there",
        )
