"""What is kept of a text that a tenant writes: short ones shared, long ones cut.

    text ──short──▶ the one that stands for all equal ones, while it is in use
     └────long────▶ its beginning, its length and a digest: two that differ do not become one

An annotation may have 256 KiB, and its text comes back as a gang's key, in claims and in sentences.
No vocabulary reads so much, but of a few annotations. What is cut is longer than what is read of
it, so that it is refused by the same rules as the whole, which show its beginning.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

MOST_TEXT = 5_120  # characters: the levels of a domain, sixteen label keys of 317, are 5,087
MOST_LONG_TEXT = 66_560  # … and of LONG, of which 65,536 are read
LONG = frozenset(
    ("kueue.x-k8s.io/pod-group-sets", "corral.dev/room", "corral.dev/succeeded")
)  # spelled in `app.dialects`, which a test holds against these
SHARED = 8_192  # texts that stand for all equal ones: names of nodes, levels, gates, groups …
LONGEST_SHARED = 253  # … which are names


def cut(text: str, most: int = MOST_TEXT) -> str:
    """Return a text of at most so many characters; one that is cut says so and stays unique."""
    if len(text) <= most:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    end = f"… ({len(text)} characters, {digest})"
    return text[: most - len(end)] + end


def kept_text(key: str, text: str) -> str:
    """Return what is kept of the label or annotation of this key."""
    return shared(cut(text, MOST_LONG_TEXT if key in LONG else MOST_TEXT))


def shared(text: str) -> str:
    """Return the text itself, or an equal one that is in use already."""
    return _shared(text) if len(text) <= LONGEST_SHARED else text


@lru_cache(SHARED)
def _shared(text: str) -> str:
    return text
