"""An account is never overdrawn."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Response
from quorate.adts.types.account import Account
from tests.unit.adts.types.steps import OK, Words, responses

AMOUNTS = st.integers(1, 4)


@given(st.lists(st.tuples(st.sampled_from(["Credit", "Debit"]), AMOUNTS) | st.just(("Balance",))))
def test_an_account_is_never_overdrawn(words: Words) -> None:
    balance = 0
    for (word, *args), response in responses(Account(), words):
        if word == "Credit":
            balance += args[0]
        elif word == "Debit" and args[0] <= balance:
            balance -= args[0]
        elif word == "Debit":
            assert response == Response("Overdraft")
            continue
        assert response == (Response("Ok", (balance,)) if word == "Balance" else OK)
