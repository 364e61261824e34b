"""The connection of a party to a coordinator: SPEC-TRANSPORT.md §1 to §3, §7 and §8."""

import datetime
import json
import math
import os
import socket
import ssl
import struct
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from primitives import H

(HELLO, REFUSAL, JOIN, MESSAGE, BROADCAST, END, PART, ABSENCE, OFFER,
 UPLOAD_NOW) = range(1, 11)  # §2
PIECE = 1 << 20  # of a body in parts, §7
MOST_TEXT = 64 << 10  # of a frame that is JSON, §8


class FrameError(Exception):
    """The connection ends: what came is no frame of this protocol."""


class RefusalError(Exception):
    """The coordinator does not go on with this party. It does not dial again."""


def read_identity(path):
    """The seed of an Ed25519 key in a PEM file (PKCS #8)."""
    with open(path, "rb") as file:
        return load_pem_private_key(file.read(), None).private_bytes_raw()


def strict_json(text):
    """JSON of §3: no key twice, nothing behind the end."""
    def table(pairs):
        if len(dict(pairs)) != len(pairs):
            raise FrameError("a key that comes twice")
        return dict(pairs)

    def nothing(text):
        raise FrameError(text)
    try:
        return json.loads(text.decode(), object_pairs_hook=table, parse_constant=nothing)
    except (ValueError, RecursionError) as e:
        raise FrameError(str(e)) from None


def certificate(identity_seed):
    """A certificate that says no more than a key: §1."""
    key = Ed25519PrivateKey.from_private_bytes(identity_seed)
    day = datetime.datetime(1970, 1, 2)
    made = (x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(x509.Name([]))
            .public_key(key.public_key()).serial_number(1).not_valid_before(day)
            .not_valid_after(day.replace(year=4000)).sign(key, None))
    return (key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + made.public_bytes(Encoding.PEM))


class Connection:
    """Frames over TCP with TLS 1.3 between keys: §1, §2."""

    def __init__(self, address, identity_seed, coordinator):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the key is checked
        context.set_alpn_protocols(["hushsum/1"])
        handle, path = tempfile.mkstemp()  # which only its owner may read
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(certificate(identity_seed))
            context.load_cert_chain(path)
        finally:
            os.remove(path)
        host, port = address.rsplit(":", 1)
        self.socket = context.wrap_socket(socket.create_connection((host, int(port)), 10))
        shown = x509.load_der_x509_certificate(self.socket.getpeercert(True)).public_key()
        if (self.socket.selected_alpn_protocol() != "hushsum/1"
                or shown.public_bytes_raw() != coordinator):
            self.socket.close()
            raise RefusalError("another coordinator answers, or another protocol")
        self.socket.settimeout(None)
        self.parts = None  # (kind, bytes) of a body that comes in parts

    def close(self):
        self.socket.close()

    def send(self, kind, body):
        """A body, in parts if it is long: §7."""
        pieces = [body[i:i + PIECE] for i in range(0, len(body), PIECE)] or [b""]
        for piece in pieces[:-1]:
            self.send_frame(bytes((PART, kind)) + piece)
        self.send_frame(bytes((kind,)) + pieces[-1])

    def send_frame(self, frame):
        self.socket.sendall(struct.pack(">I", len(frame)) + frame)

    def send_json(self, kind, value):
        self.send(kind, json.dumps(value, separators=(",", ":")).encode())

    def read(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the connection has ended")
            data += piece
        return bytes(data)

    def receive(self, longest):
        """The next whole body, with its kind; longest is of a body in parts."""
        while True:
            (length,) = struct.unpack(">I", self.read(4))
            if not 1 <= length <= PIECE + 2:
                raise FrameError(f"a frame of {length} bytes")
            frame = self.read(length)
            body = self.join(frame, longest)
            if body is not None:
                return frame[0], body

    def join(self, frame, longest):
        """The body that a frame ends, or None: §7."""
        kind, body = frame[0], frame[1:]
        if kind == PART:
            if not body or body[0] not in (MESSAGE, BROADCAST, END):
                raise FrameError("a part of nothing")
            kind, body = body[0], body[1:]
        if self.parts is not None:
            if kind != self.parts[0]:
                raise FrameError("another frame between parts")
            body = self.parts[1] + body
        if len(body) > longest:
            raise FrameError(f"a body of {len(body)} bytes")
        if frame[0] == PART:
            self.parts = kind, body
            return None
        self.parts = None
        return body


class Cast:
    """A Broadcast: §5."""

    def __init__(self, body):
        if len(body) < 40 or len(body) % 8:
            raise FrameError("no broadcast")
        self.round = int.from_bytes(body[:8], "big")
        self.model = list(struct.unpack(f">{len(body) // 8 - 5}d", body[40:]))
        if not all(map(math.isfinite, self.model)):
            raise FrameError("a model that is not finite")
        self.digest = H(b"broadcast", body)


def read_number(body):
    if len(body) != 8:
        raise FrameError("no number")
    return int.from_bytes(body, "big")


def read_refusal(body):
    value = strict_json(body) if len(body) <= MOST_TEXT else None
    if not isinstance(value, dict) or set(value) - {"field", "ours", "theirs"}:
        raise FrameError("a refusal that does not parse")
    if not value.get("field"):
        return RefusalError(value.get("ours", ""))
    return RefusalError(f"{value['field']}: the coordinator has {value['ours']}, "
                        f"this party {value['theirs']}")
