"""What JSON has blown up is read at the price of what is stored, and means the same."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube.decoding.large.escapes import LONG, shortened

PIECES = [
    "\\\\",
    '\\"',
    "\\u003c",
    "\\u0000",
    "\\u00e9",
    "\\n",
    "u00",
    "/",
    "a",
    "\\\\u003c",
    "\u00fc",
]


@given(
    texts=st.lists(st.lists(st.sampled_from(PIECES)).map("".join), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 200)),
)
def test_however_it_is_cut_it_stays_json_of_the_same_shape(texts, cuts):
    """Keys, values and the number of strings: no quote comes, goes or ends a text it did not."""
    raw = ('["' + '","'.join(texts) + '"]').encode()
    bounds = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts)})
    chunks = [raw[start:end] for start, end in pairwise(bounds)]
    shorter = b"".join(shortened(chunk, LONG) for chunk in chunks)
    before, after = msgspec.json.decode(raw), msgspec.json.decode(shorter)
    assert len(before) == len(after)
    for was, became in zip(before, after, strict=True):
        assert became == was or "/" in became


@pytest.mark.parametrize("escape", [b"\\u003c", b"\\u0001"])
def test_a_dense_chunk_of_a_long_text_is_half_as_long(escape):
    assert len(shortened(escape * 10_000, LONG)) == 30_000


@pytest.mark.parametrize(
    ("chunk", "before"),
    [
        pytest.param(b"\\u003c" * 10_000, LONG - 1, id="of_what_is_not_long"),
        pytest.param(b'{"a":"b \\u003e c",' * 10_000, LONG, id="with_few_escapes"),
    ],
)
def test_any_other_chunk_is_left_as_it_is(chunk, before):
    assert shortened(chunk, before) is chunk
