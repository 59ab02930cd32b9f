"""A text that JSON has blown up is made shorter as it comes in, chunk by chunk.

Go writes `<`, `>`, `&` and control characters as six bytes each, so an object of 1.5 MiB may come
as nine. Skipping escapes is what takes a decoder long: 7 to 15 ms for these, in one step. A chunk
with the escapes replaced is as many bytes less, and skipping what is left takes one ms. A chunk is
replaced in one, and between two chunks the event loop is left to others.

    …\\u003c\\u003c…  ──▶  …/3c/3c…      beyond the first LONG bytes, where there are many

What is left has the same quotes, since a slash is good alone and behind a backslash. Its texts are
not the same: nothing that is read of an object has such characters, and one of fewer bytes than
LONG keeps all of its text.
"""

from __future__ import annotations

LONG = 2**20  # bytes; few objects have more, and of those only what is mostly escapes changes
_ESCAPE = b"\\u00"  # of a character before U+0100; two more digits follow
_SHORT = b"/"
_DENSE = 12  # bytes, of which one backslash makes it worth the while


def shortened(chunk: bytes, before: int) -> bytes:
    """Return a chunk of JSON, shorter if it is mostly escapes; `before`: bytes before this one."""
    if before < LONG or chunk.count(b"\\") * _DENSE < len(chunk):
        return chunk
    return chunk.replace(_ESCAPE, _SHORT)
