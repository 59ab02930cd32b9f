"""Quantities are exact, and hostile ones are refused quickly."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube.core.quantity import LIMIT, InvalidQuantity, amount, many_nano_units, nano_units

FACTORS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000) ** (i + 1) for i, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Fraction(1024) ** (i + 1) for i, suffix in enumerate("KMGTPE")},
    **{f"{e}{x}": Fraction(10) ** int(x) for e in "eE" for x in ("-30", "-3", "0", "+2", "30")},
}


@given(
    whole=st.from_regex(r"[0-9]{1,24}", fullmatch=True),
    part=st.from_regex(r"(\.[0-9]{0,20})?", fullmatch=True),
    suffix=st.sampled_from(sorted(FACTORS)),
    resource=st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
)
def test_amounts_are_the_exact_value_rounded_and_cut(whole, part, suffix, resource):
    exact = Fraction(whole + part.rstrip(".")) * FACTORS[suffix]
    exact *= 1000 if resource == "cpu" else 1
    text = whole + part + suffix
    assert amount(resource, text, rounding="down") == min(exact // 1, LIMIT)
    assert amount(resource, text, rounding="up") == min(-(-exact // 1), LIMIT)


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        pytest.param("cpu", "1500m", 1500, id="millicores"),
        pytest.param("cpu", "0.1m", 1, id="a_tenth_of_a_millicore_asks_for_one"),
        pytest.param("cpu", ".5", 500, id="no_digit_before_the_point"),
        pytest.param("cpu", "2.", 2000, id="no_digit_after_the_point"),
        pytest.param("memory", "1Ki", 1024, id="binary_suffix"),
        pytest.param("memory", "1k", 1000, id="decimal_suffix"),
        pytest.param("memory", "1E", 10**18, id="E_alone_is_exa"),
        pytest.param("memory", "1E3", 1000, id="E_with_digits_is_an_exponent"),
        pytest.param("memory", "1Ei", 2**60, id="Ei_is_binary"),
        pytest.param("memory", "100m", 1, id="milli_bytes_ask_for_one_byte"),
        pytest.param("memory", "+5", 5, id="plus_sign"),
        pytest.param("memory", 4096, 4096, id="a_bare_json_integer"),
        pytest.param("cpu", 0.1, 100, id="a_bare_json_fraction_is_what_was_written"),
        pytest.param("memory", "9223372036854775808", LIMIT, id="two_to_the_63_is_cut"),
        pytest.param("memory", 10**40, LIMIT, id="a_huge_integer_is_cut"),
    ],
)
def test_requests_round_up(resource, text, expected):
    assert amount(resource, text, rounding="up") == expected


def test_allocatable_rounds_down():
    assert amount("cpu", "3999.9m", rounding="down") == 3999
    assert amount("memory", "1023.99", rounding="down") == 1023


@pytest.mark.parametrize(
    "hostile",
    [
        *("1e1000000", "1e31", "1e-31", "-5", "-0", "NaN", "nan", "Inf", "inf", "", " ", " 1"),
        *("1 ", "1\n", "1ki", "1K", "1Mib", "1e", "1e+", "1.5.5", ".", "m", "0x10", "1_000"),
        *("\u0661\u0662", "\uff11", "1\u00b2", "1\x00", "9" * 65, "1e1.5", "--1", "++1"),
        *(None, True, [], {}, -1, 10**5000, float("inf"), float("nan"), -0.5, b"1"),
    ],
    ids=lambda value: ascii(value)[:20] if not isinstance(value, int) else "integer",
)
def test_what_is_not_a_quantity_is_refused_by_name(hostile):
    with pytest.raises(InvalidQuantity, match=r"^example\.com/widget: ") as refused:
        amount("example.com/widget", hostile, rounding="up")
    assert len(str(refused.value)) < 400


def test_the_message_shows_the_value():
    with pytest.raises(InvalidQuantity, match=re.escape("cpu: '1e1000000' is not a quantity")):
        amount("cpu", "1e1000000", rounding="up")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("x" * 64, "'" + "x" * 64 + "' is", id="a_text_of_the_longest"),
        pytest.param("x" * 65, "'" + "x" * 64 + "'... is", id="a_longer_one_is_cut"),
        pytest.param("9" * 65, "'" + "9" * 64 + "'... is", id="digits_that_are_too_many"),
        pytest.param("\u00e9", r"'\xe9' is", id="beyond_ascii"),
        pytest.param(-1, "-1 is", id="an_integer"),
        pytest.param(-(10**64 - 1), f"-{'9' * 64} is", id="an_integer_of_64_digits"),
        pytest.param(-(10**64), "an integer of more than 64 digits is", id="of_65"),
        pytest.param(10**64, "an integer of more than 64 digits is", id="a_positive_one"),
        pytest.param(None, "a NoneType is", id="null"),
        pytest.param([1], "a list is", id="a_list"),
    ],
)
def test_the_message_shows_what_a_reader_can_take_in(value, shown):
    with pytest.raises(InvalidQuantity) as refused:
        amount("cpu", value, rounding="up")
    assert str(refused.value) == f"cpu: {shown} not a quantity of zero or more"


def test_as_long_a_text_and_as_large_an_integer_as_may_be_are_read():
    assert amount("memory", "0" * 63 + "7", rounding="up") == 7
    assert amount("memory", 10**64 - 1, rounding="up") == LIMIT
    assert amount("cpu", 0, rounding="up") == amount("cpu", "0", rounding="up") == 0
    assert amount("memory", "1e30", rounding="up") == LIMIT
    assert amount("memory", "1e-30", rounding="up") == 1


@given(st.text(max_size=80) | st.integers() | st.floats() | st.none() | st.booleans())
def test_any_input_is_an_amount_or_refused(anything):
    try:
        read = amount("memory", anything, rounding="up")
    except InvalidQuantity:
        return
    assert 0 <= read <= LIMIT


STORED = st.builds(
    lambda number, suffix: f"{number}{suffix}",
    st.integers(0, 2**63 - 1),
    st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e18", "e-9"]),
)


@given(st.lists(STORED, min_size=1))
def test_many_quantities_as_the_api_server_writes_them_are_read_together(texts):
    assert many_nano_units(texts) == [nano_units("cpu", text) for text in texts]


@given(
    st.lists(
        st.one_of(STORED, st.text("019,.-+eEmKi_[] \n\u0661"), st.from_regex(r"[0-9]{30,70}m?")),
        min_size=1,
        max_size=4,
    )
)
def test_many_quantities_are_never_read_differently_than_each(texts):
    together = many_nano_units(texts)
    assert together is None or together == [nano_units("cpu", text) for text in texts]


@pytest.mark.parametrize("other", [None, 1, 1.5, True, b"1"])
def test_what_is_no_text_is_not_read_together(other):
    assert many_nano_units(["1", other]) is None
