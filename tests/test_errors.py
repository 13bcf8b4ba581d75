import pytest

from confed.errors import ConfedError, DivergedError, said_of, unknown_name


def test_an_error_says_of_what_it_is_and_stays_what_it_was():
    with pytest.raises(DivergedError, match=r"^domain book: the loss is not finite$"), said_of("domain book"):
        raise DivergedError("the loss is not finite")
    with pytest.raises(KeyError), said_of("domain book"):
        raise KeyError("a bug of ours")
    assert issubclass(DivergedError, ConfedError)


def test_the_nearest_names_are_offered():
    assert str(unknown_name("method", "pfedrek", ["pfedrec", "ease"])) == (
        "unknown method 'pfedrek': did you mean pfedrec?"
    )


def test_without_a_near_name_the_known_ones_are_listed_up_to_a_point():
    assert "known: a, b" in str(unknown_name("thing", "zzz", ["b", "a"]))
    assert "and 80 more" in str(unknown_name("user", "zzz", [f"{n:03}" for n in range(100)]))
