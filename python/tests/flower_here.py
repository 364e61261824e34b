"""Flower's published source with what Debian has of its dependencies.

HUSHSUM_FLOWER names a folder with Flower's package ``flwr`` of version 1.9. Debian calls
pycryptodome's package Cryptodome, has an older cryptography, and no ``iterators``.
"""

from __future__ import annotations

import os
import sys
import types


def find() -> str | None:
    """Make Flower importable, and return why it is not."""
    source = os.environ.get("HUSHSUM_FLOWER")
    if source:
        sys.path.insert(0, source)
    try:
        import Cryptodome.Protocol.SecretSharing  # noqa: F401
        import Cryptodome.Util.Padding  # noqa: F401
        from cryptography.hazmat.primitives import serialization
    except ImportError as err:
        return f"Flower's SecAgg+ needs python3-pycryptodome and python3-cryptography: {err}"
    for name in [n for n in sys.modules if n.split(".")[0] == "Cryptodome"]:
        sys.modules.setdefault("Crypto" + name[len("Cryptodome"):], sys.modules[name])
    if not hasattr(serialization, "SSHPrivateKeyTypes"):
        for kind in ("SSHPrivateKeyTypes", "SSHPublicKeyTypes"):
            setattr(serialization, kind, object)  # in annotations only
    if "iterators" not in sys.modules:
        try:
            import iterators  # noqa: F401
        except ImportError:
            module = types.ModuleType("iterators")
            module.TimeoutIterator = None  # type: ignore[attr-defined]  # of gRPC's server only
            sys.modules["iterators"] = module
    try:
        import flwr.client.mod  # noqa: F401
        import flwr.server.workflow  # noqa: F401
    except ImportError as err:
        return f"there is no Flower: set HUSHSUM_FLOWER to its source ({err})"
    return None
