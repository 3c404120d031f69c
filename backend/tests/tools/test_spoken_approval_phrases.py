"""Phrases that approve a call when they are spoken."""

from __future__ import annotations

import pytest

from sluicegate.tools.spoken_approval_phrases import is_usable, spoken_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Confirm payment.", "confirm payment"),
        ("  CONFIRM —  payment?! ", "confirm payment"),
        ("\uff43onfirm", "confirm"),
        ("Zahlung bestätigen", "zahlung bestätigen"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("支払いを確認します。", "支払いを確認します"),
        ("भुगतान की पुष्टि", "भुगतान की पुष्टि"),
        ("", ""),
    ],
)
def test_words_are_compared_as_they_sound(text: str, words: str) -> None:
    assert spoken_words(text) == words


@pytest.mark.parametrize("phrase", ["confirm payment", "Zahlung bestätigen", "承認します"])
def test_a_phrase_of_several_letters_can_be_used(phrase: str) -> None:
    assert is_usable(phrase)


@pytest.mark.parametrize(
    "phrase", ["", "yes", "go ahead!", "はい", "confirm payment 5", "a" * 61, "?" * 20]
)
def test_a_phrase_that_is_said_too_easily_or_misheard_cannot(phrase: str) -> None:
    assert not is_usable(phrase)
