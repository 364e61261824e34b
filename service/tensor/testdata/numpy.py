"""Writes .npz files as NumPy does, into the folder that is named: python3 numpy.py FOLDER.
A second argument names a file that all of them go into as text, such as numpy.json.

With --read FILE it prints what NumPy finds in a file: name, type, shape and numbers."""

import base64
import json
import os
import sys

sys.path = [p for p in sys.path if os.path.abspath(p) != os.path.dirname(os.path.abspath(__file__))]

import numpy as np

if sys.argv[1] == "--read":
    with np.load(sys.argv[2], allow_pickle=False) as f:
        for name in f.files:
            a = f[name]
            numbers = " ".join(float(x).hex() for x in a.ravel())
            print(f"{name} {a.dtype.str} {list(a.shape)} {numbers}")
    sys.exit()

folder = sys.argv[1]
six = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


def write(file, save=np.savez, **arrays):
    save(os.path.join(folder, file + ".npz"), **arrays)


write("plain", **{"layer/0/weight": six, "layer/0/bias": np.array([-1.5, 2], np.float32)})
np.savez(os.path.join(folder, "positional.npz"), six)
write("compressed", np.savez_compressed, **{"w": six, "b": six[0]})
write("double", w=six.astype(np.float64) / 3, scalar=np.float64(0.1))
write("scalar", x=np.float32(2.5))
write("noncontiguous", w=np.arange(12, dtype=np.float32).reshape(3, 4)[::2, ::2])
write("dotted", **{"model.npy": six[0], "with space": six[1]})
write("fortran", w=np.asfortranarray(six))
write("transposed", w=six.T)
write("half", w=six.astype(np.float16))
write("integer", w=six.astype(np.int64))
write("unsigned", w=six.astype(np.uint8))
write("boolean", w=six > 1)
write("complex", w=six.astype(np.complex64))
write("big", w=six.astype(">f4"))
write("big-double", w=six.astype(">f8"))
write("mixed", a=six, b=six.astype(np.float64))
write("objects", w=np.array([six, None], dtype=object))
write("text", w=np.array(["one", "two"]))
write("bytes", w=np.array([b"one", b"two"]))
write("dates", w=np.array(["2026-01-01"], dtype="datetime64[D]"))
write("raw", w=np.zeros(2, dtype="V2"))
write("structured", w=np.zeros(2, dtype=[("a", "<f4"), ("b", "<f4")]))
write("empty", w=np.zeros((3, 0), np.float32))
write("none")
write("nan", w=np.array([1, np.nan], np.float32))
write("infinite", w=np.array([np.inf], np.float64))
write("name", **{"größe": six})
with open(os.path.join(folder, "array.npz"), "wb") as f:
    np.save(f, six)

if len(sys.argv) > 2:
    packed = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            packed[name.removesuffix(".npz")] = base64.b64encode(f.read()).decode()
    with open(sys.argv[2], "w") as f:
        json.dump(packed, f, indent=1, sort_keys=True)
        f.write("\n")
