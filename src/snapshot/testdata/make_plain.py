"""Writes plain.p2.pickle ... plain.p5.pickle: the same plain data in every protocol, for pickle_test.cc."""

import pathlib
import pickle

frame = {"filename": "train.py", "line": 12, "name": "step"}
DATA = {
    "numbers": [0, 1, 255, 256, 65535, 65536, -1, -70000, 2**31, -(2**31), 2**40, 2**59, 2**63 - 1, -(2**63), 2**64, 10**40],
    "floats": [0.0, 1.5, -2.25e300],
    "switches": [True, False, None],
    "texts": ["", "é", "x" * 300],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "shared": [frame, frame],
    "records": [{"a": i, "b": str(i)} for i in range(1100)],
    "wide": {str(i): i for i in range(1100)},
    "other_keys": {1: "one", "two": 2},
}

for protocol in (2, 3, 4, 5):
    path = pathlib.Path(__file__).with_name(f"plain.p{protocol}.pickle")
    path.write_bytes(pickle.dumps(DATA, protocol=protocol))
