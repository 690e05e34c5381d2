"""Reads and writes safetensors files: 8 bytes header length (little-endian), a JSON header, raw data."""

import json
import struct

import numpy as np

_NAMES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "uint8": "U8"}
_TYPES = {name: np.dtype(dtype).newbyteorder("<") for dtype, name in _NAMES.items()}


def write(path, tensors, metadata=None):
    """tensors: {name: numpy array}; metadata: {name: text}, kept in the header."""
    header = {"__metadata__": {key: str(value) for key, value in metadata.items()}} if metadata else {}
    # Widest types first, so that every tensor starts at a multiple of its element size.
    names = sorted(tensors, key=lambda name: -np.asarray(tensors[name]).dtype.itemsize)
    chunks, position = [], 0
    for name in names:
        array = np.asarray(tensors[name])
        dtype = _NAMES[array.dtype.name]
        data = array.astype(_TYPES[dtype]).tobytes(order="C")
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [position, position + len(data)],
        }
        chunks.append(data)
        position += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begin at a multiple of 8 bytes
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def read(path):
    """Returns ({name: numpy array}, metadata)."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], dtype=_TYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"]).copy()
    return tensors, metadata
