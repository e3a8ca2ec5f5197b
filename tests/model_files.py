"""Model files as a stranger could write them."""

import hashlib
import json
import struct

from safetensors.numpy import load, save

# The two entries of a file's metadata.
HEADER, CHECKSUM = "lnml_model", "lnml_sha256"
# What safetensors calls the types of arrays, and what NumPy does.
TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U64": "<u8"}


def metadata_of(content: bytes) -> dict[str, str]:
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + size])["__metadata__"]


def checksum_of(content: bytes) -> str:
    """SHA-256 of the JSON text, and of name, type, shape and bytes of every array by name."""
    size = struct.unpack("<Q", content[:8])[0]
    entries, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    digest = hashlib.sha256(entries.pop("__metadata__")[HEADER].encode())
    for name, entry in sorted(entries.items()):
        shape = str(tuple(entry["shape"]))
        digest.update("\0".join(["", name, TYPES[entry["dtype"]], shape, ""]).encode())
        digest.update(data[slice(*entry["data_offsets"])])
    return digest.hexdigest()


def rewritten(content: bytes, change) -> bytes:
    """Return a file with other content and a right checksum, as a stranger could write it."""
    header, arrays = json.loads(metadata_of(content)[HEADER]), dict(load(content))
    change(header, arrays)
    text = json.dumps(header)
    unsigned = save(arrays, {HEADER: text})
    return save(arrays, {HEADER: text, CHECKSUM: checksum_of(unsigned)})
