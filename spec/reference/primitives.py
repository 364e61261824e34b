"""Cryptographic primitives of SPEC.md §1: hashes, keys, seals, ML-KEM-768, signatures, masks.

Readable rather than fast, and not constant time: use it to learn the protocol and to test
implementations, not to protect anybody's data."""

import hashlib
import hmac

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import (Ed25519PrivateKey,
                                                               Ed25519PublicKey)
from cryptography.hazmat.primitives.asymmetric.x25519 import (X25519PrivateKey,
                                                              X25519PublicKey)
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

L = 2**252 + 27742317777372353535851937790883648493  # order of the scalar field, §6.1
LABEL = b"hushsum/1 "
unhex = bytes.fromhex


def u8(x):
    return x.to_bytes(1, "big")


def u32(x):
    return x.to_bytes(4, "big")


def u64(x):
    return x.to_bytes(8, "big")


def sha256(data):  # §1
    return hashlib.sha256(data).digest()


def H(label, *parts):
    """H of §1: SHA-256 of the label and what follows it."""
    return sha256(LABEL + label + b"".join(parts))


# HKDF-SHA256 of RFC 5869.


def extract(salt, secret):  # §1
    return hmac.new(salt, secret, hashlib.sha256).digest()


def expand(key, info, length):  # §1
    out, block = b"", b""
    for i in range(1, -(-length // 32) + 1):
        block = hmac.new(key, block + info + u8(i), hashlib.sha256).digest()
        out += block
    return out[:length]


def hkdf(secret, label, length):
    """HKDF of §1. An empty salt is as good as 32 zero bytes (RFC 5869 §2.2)."""
    return expand(extract(bytes(32), secret), LABEL + label, length)


# XChaCha20-Poly1305: draft-irtf-cfrg-xchacha-03, §2.2 and §2.3.


def hchacha20(key, nonce):  # §2.2 of the draft
    def words(b):
        return [int.from_bytes(b[i:i + 4], "little") for i in range(0, len(b), 4)]

    s = words(b"expand 32-byte k") + words(key) + words(nonce)

    def quarter(a, b, c, d):
        for x, y, z, turn in (a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            s[z] ^= s[x]
            s[z] = (s[z] << turn | s[z] >> 32 - turn) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return b"".join(w.to_bytes(4, "little") for w in s[:4] + s[12:])


def seal(key, nonce, plaintext, data):
    """Seal of §1."""
    box = ChaCha20Poly1305(hchacha20(key, nonce[:16]))
    return box.encrypt(bytes(4) + nonce[16:], plaintext, data)


def unseal(key, nonce, sealed, data):
    """What was sealed, or None."""
    box = ChaCha20Poly1305(hchacha20(key, nonce[:16]))
    try:
        return box.decrypt(bytes(4) + nonce[16:], sealed, data)
    except InvalidTag:
        return None


# X25519: §4.4.

LOW_ORDER = {unhex(x) for x in (
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")}


def x25519_acceptable(key):
    """An acceptable X25519 key: §4.4."""
    return (len(key) == 32 and int.from_bytes(key, "little") < 2**255 - 19
            and key not in LOW_ORDER)


def x25519_public(private):  # RFC 7748 §5
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def x25519(private, public):
    """The shared secret, or None if it is zero."""
    key = X25519PrivateKey.from_private_bytes(private)
    try:
        secret = key.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # a secret of zeros
        return None
    return secret if any(secret) else None


# Ed25519: §2.2 and §2.3. The curve is needed for the check of identity keys alone.

P25519 = 2**255 - 19
D25519 = -121665 * pow(121666, -1, P25519) % P25519


def edwards_decode(key):
    """The point (x, y) of RFC 8032 §5.1.3 from its canonical encoding, or None."""
    y = int.from_bytes(key, "little") & (1 << 255) - 1
    sign = key[31] >> 7
    if y >= P25519:
        return None
    u, v = y * y - 1, D25519 * y * y + 1
    x = u * pow(v, 3, P25519) * pow(u * pow(v, 7, P25519), (P25519 - 5) // 8, P25519) % P25519
    if v * x * x % P25519 == -u % P25519:
        x = x * pow(2, (P25519 - 1) // 4, P25519) % P25519
    if v * x * x % P25519 != u % P25519 or x == 0 and sign:
        return None
    return (x if x & 1 == sign else P25519 - x), y


def edwards_double(point):  # RFC 8032 §5.1.4
    x, y = point
    t = D25519 * x * x * y * y
    return (2 * x * y * pow(1 + t, -1, P25519) % P25519,
            (y * y + x * x) * pow(1 - t, -1, P25519) % P25519)


def identity_acceptable(key):
    """An acceptable identity key: §2.2."""
    point = edwards_decode(key) if len(key) == 32 else None
    if point is None:
        return False
    for _ in range(3):
        point = edwards_double(point)
    return point != (0, 1)


def signed_bytes(label, statement):
    """What a signature is over: §2.3."""
    return u8(len(LABEL + label)) + LABEL + label + statement


def sign(identity_seed, label, statement):  # §2.3
    key = Ed25519PrivateKey.from_private_bytes(identity_seed)
    return key.sign(signed_bytes(label, statement))


def verify(key, label, statement, signature):
    """Whether a signature of §2.3 holds. OpenSSL refuses S ≥ L and compares R byte for byte."""
    return verify_raw(key, signed_bytes(label, statement), signature)


def verify_raw(key, message, signature):
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def identity_public(identity_seed):  # RFC 8032 §5.1.5
    return Ed25519PrivateKey.from_private_bytes(identity_seed).public_key().public_bytes_raw()


# Masks: §8.2.


def keystream(seed, segment, words):
    """The stream of a segment, as so many 64-bit words."""
    nonce = seed[16:24] + (int.from_bytes(seed[24:28], "big") ^ segment).to_bytes(4, "big")
    aes = Cipher(algorithms.AES(seed[:16]), modes.CTR(nonce + bytes(4))).encryptor()
    stream = aes.update(bytes(8 * words))
    return [int.from_bytes(stream[i:i + 8], "little") for i in range(0, len(stream), 8)]


def mask(seed, layout):
    """The masks of a seed, for each segment of a layout of (length, bits)."""
    out = []
    for i, (length, bits) in enumerate(layout):
        per, low = 64 // bits, (1 << bits) - 1
        words = keystream(seed, i, -(-length // per))
        out.append([words[x // per] >> x % per * bits & low for x in range(length)])
    return out


# ML-KEM-768 of FIPS 203. The numbers of its algorithms stand in brackets.

Q, K = 3329, 3


REVERSED = [int(f"{i:07b}"[::-1], 2) for i in range(128)]
ZETAS = [pow(17, r, Q) for r in REVERSED]
GAMMAS = [pow(17, 2 * r + 1, Q) for r in REVERSED]


def byte_encode(f, d):
    """ByteEncode_d (5)."""
    number = sum(c << d * i for i, c in enumerate(f))
    return number.to_bytes(32 * d, "little")


def byte_decode(b, d):
    """ByteDecode_d (6), for d = 12 without the reduction, which the checks of keys see to."""
    number, low = int.from_bytes(b, "little"), (1 << d) - 1
    return [number >> d * i & low for i in range(256)]


def compress(f, d):
    """Compress_d of §4.2.1."""
    return [((x << d) + Q // 2) // Q & (1 << d) - 1 for x in f]


def decompress(f, d):  # Decompress_d of §4.2.1
    return [(x * Q + (1 << d - 1)) >> d for x in f]


def sample_ntt(seed):
    """SampleNTT (7)."""
    out, stream = [], hashlib.shake_128(seed).digest(3 * 512)
    for i in range(0, len(stream), 3):
        a, b, c = stream[i:i + 3]
        for d in a | (b & 15) << 8, b >> 4 | c << 4:
            if d < Q:
                out.append(d)
    assert len(out) >= 256  # 512 triples fall short with a chance below 2^-100
    return out[:256]


def sample_cbd(b):
    """SamplePolyCBD_2 (8)."""
    number = int.from_bytes(b, "little")
    bits = [number >> i & 1 for i in range(1024)]
    return [(bits[i] + bits[i + 1] - bits[i + 2] - bits[i + 3]) % Q for i in range(0, 1024, 4)]


def ntt(f):
    """NTT (9)."""
    f, i, length = list(f), 1, 128
    while length >= 2:
        for start in range(0, 256, 2 * length):
            for j in range(start, start + length):
                t = ZETAS[i] * f[j + length] % Q
                f[j + length], f[j] = (f[j] - t) % Q, (f[j] + t) % Q
            i += 1
        length //= 2
    return f


def inverse_ntt(f):
    """NTT^-1 (10)."""
    f, i, length = list(f), 127, 2
    while length <= 128:
        for start in range(0, 256, 2 * length):
            for j in range(start, start + length):
                t = f[j]
                f[j] = (t + f[j + length]) % Q
                f[j + length] = ZETAS[i] * (f[j + length] - t) % Q
            i -= 1
        length *= 2
    return [x * 3303 % Q for x in f]


def product(f, g):
    """MultiplyNTTs (11)."""
    out = []
    for i in range(128):
        a, b, c, d = f[2 * i], f[2 * i + 1], g[2 * i], g[2 * i + 1]
        out += [(a * c + b * d * GAMMAS[i]) % Q, (a * d + b * c) % Q]
    return out


def add(f, g):
    return [(a + b) % Q for a, b in zip(f, g)]


def dot(f, g):
    out = [0] * 256
    for a, b in zip(f, g):
        out = add(out, product(a, b))
    return out


def _prf(seed, i):
    return hashlib.shake_256(seed + u8(i)).digest(128)


def _matrix(rho):
    return [[sample_ntt(rho + bytes((j, i))) for j in range(K)] for i in range(K)]


def _g(data):
    out = hashlib.sha3_512(data).digest()
    return out[:32], out[32:]


def kem_keys(seed):
    """KeyGen_internal (16) of d ‖ z: the encapsulation and the decapsulation key."""
    d, z = seed[:32], seed[32:]
    rho, sigma = _g(d + u8(K))
    matrix = _matrix(rho)
    s = [ntt(sample_cbd(_prf(sigma, i))) for i in range(K)]
    e = [ntt(sample_cbd(_prf(sigma, K + i))) for i in range(K)]
    t = [add(dot(matrix[i], s), e[i]) for i in range(K)]
    ek = b"".join(byte_encode(f, 12) for f in t) + rho
    dk = b"".join(byte_encode(f, 12) for f in s) + ek + hashlib.sha3_256(ek).digest() + z
    return ek, dk


def kem_acceptable(ek):
    """The check of an encapsulation key: SPEC.md §4.4."""
    return len(ek) == 1184 and all(
        x < Q for i in range(K) for x in byte_decode(ek[384 * i:384 * i + 384], 12))


def _kem_encrypt(ek, m, r):
    """K-PKE.Encrypt (14)."""
    t = [byte_decode(ek[384 * i:384 * i + 384], 12) for i in range(K)]
    matrix = _matrix(ek[1152:])
    y = [ntt(sample_cbd(_prf(r, i))) for i in range(K)]
    e1 = [sample_cbd(_prf(r, K + i)) for i in range(K)]
    e2 = sample_cbd(_prf(r, 2 * K))
    u = [add(inverse_ntt(dot([matrix[j][i] for j in range(K)], y)), e1[i]) for i in range(K)]
    v = add(add(inverse_ntt(dot(t, y)), e2), decompress(byte_decode(m, 1), 1))
    return (b"".join(byte_encode(compress(f, 10), 10) for f in u)
            + byte_encode(compress(v, 4), 4))


def kem_encapsulate(ek, m):
    """Encaps_internal (17): the secret and the ciphertext."""
    secret, r = _g(m + hashlib.sha3_256(ek).digest())
    return secret, _kem_encrypt(ek, m, r)


def kem_decapsulate(dk, c):
    """Decaps_internal (18): the secret, another one if the ciphertext was not made for the key."""
    ek, h, z = dk[1152:2336], dk[2336:2368], dk[2368:]
    s = [byte_decode(dk[384 * i:384 * i + 384], 12) for i in range(K)]
    u = [decompress(byte_decode(c[320 * i:320 * i + 320], 10), 10) for i in range(K)]
    v = decompress(byte_decode(c[960:], 4), 4)
    w = inverse_ntt(dot(s, [ntt(f) for f in u]))
    m = byte_encode(compress([(a - b) % Q for a, b in zip(v, w)], 1), 1)
    secret, r = _g(m + h)
    if _kem_encrypt(ek, m, r) != c:
        return hashlib.shake_256(z + c).digest(32)
    return secret
