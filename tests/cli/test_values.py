"""Values on the command line: JSON, with help for words that are not."""

import io

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
