"""Values on the command line: JSON, with help for words that are not."""

import io
import json

import pytest

from quorate.cli.failure import Usage
from quorate.cli.values import compact, parse_one, parse_value, parse_words


@pytest.mark.parametrize(
    ("word", "value"), [('"x"', "x"), ("42", 42), ("null", None), ('{"a": [1, 2.5]}', {"a": [1, 2.5]})]
)
def test_json_word_is_its_value(word: str, value: object) -> None:
    assert parse_value(word) == value


def test_bare_word_is_told_how_to_quote() -> None:
    with pytest.raises(Usage, match="""write '"hello world"' for that text"""):
        parse_value("hello world")


def test_word_with_an_apostrophe_is_quoted_so_that_the_shell_takes_it() -> None:
    with pytest.raises(Usage, match="""write '"it'"'"'s"' for that text"""):
        parse_value("it's")


@pytest.mark.parametrize("word", ["NaN", "[Infinity]", "1e999", "{", "", "[" * 100_000])
def test_what_json_does_not_have_is_refused(word: str) -> None:
    with pytest.raises(Usage):
        parse_value(word)


@pytest.mark.parametrize("word", ['{"a": 1, "a": 2}', '[{"b": {"a": 1, "\\u0061": 1}}]'])
def test_a_member_that_is_given_twice_is_refused_as_by_the_api(word: str) -> None:
    with pytest.raises(Usage, match="gives a member of an object more than once"):
        parse_value(word)


def test_long_word_is_shown_in_part() -> None:
    with pytest.raises(Usage) as caught:
        parse_value("x" * 10_000)
    assert len(str(caught.value)) < 300


def test_dash_reads_json_lines_and_skips_blank_ones() -> None:
    assert parse_words(["-"], io.StringIO('1\n\n"x"\n')) == [1, "x"]


def test_bad_line_is_named_by_its_number() -> None:
    with pytest.raises(Usage, match="line 3"):
        parse_words(["-"], io.StringIO("1\n2\nx\n"))


def test_dash_among_other_words_is_a_word() -> None:
    with pytest.raises(Usage):
        parse_words(["1", "-"], io.StringIO())


def test_single_value_takes_all_of_standard_input() -> None:
    assert parse_one("-", io.StringIO('{\n"a": 1\n}\n')) == {"a": 1}


def test_compact_form_keeps_letters_and_has_no_blanks() -> None:
    assert compact({"a": ["ä", 1]}) == '{"a":["ä",1]}'


UNSEEN = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F)))
UNSEEN += "".join(map(chr, (*range(0x2028, 0x202F), *range(0x2066, 0x206A))))


def test_compact_form_spells_out_what_nobody_would_see_and_stays_the_same_json() -> None:
    value = {f"k{UNSEEN}": [UNSEEN, "\\u202e", "ä \u200d"]}
    shown = compact(value)
    assert [char for char in UNSEEN if char in shown] == []
    assert json.loads(shown) == value
    assert compact("a\u202eb\x7f") == '"a\\u202eb\\u007f"'
    assert compact("\u200d\u2027\u202f\u2065\u206a\u00a0") == '"\u200d\u2027\u202f\u2065\u206a\u00a0"', (
        "no others"
    )


def test_word_that_is_told_how_to_quote_is_spelled_out() -> None:
    with pytest.raises(Usage) as caught:
        parse_value("a\u202eb")
    assert str(caught.value).count("\\u202e") == 2
    assert "\u202e" not in str(caught.value)
