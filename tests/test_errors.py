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


@pytest.mark.parametrize(
    ("flags", "keywords"),
    [
        ("lower it (--set negatives=5)", 'lower it (options={"negatives": 5})'),
        ("--set population=all takes others", 'options={"population": "all"} takes others'),
        ("drop such users with --min-interactions 3", "drop such users with min_interactions=3"),
        ("say --rounds, or --no-holdout", "say rounds=, or holdout=False"),
        ("use --protocol warm", 'use protocol="warm"'),
        ("name it with --user-column", "name it with user="),
        ("go on with `confed run --resume runs/a-b`", 'go on with `confed.resume("runs/a-b")`'),
        (
            "or `confed run fedmf a.csv --no-holdout --rounds 9`",
            'or `confed.run("fedmf", "a.csv", holdout=False, rounds=9)`',
        ),
        ("or `confed run ease a.csv --no-holdout`", 'or `confed.run("ease", "a.csv", holdout=False)`'),
        ("my--file.csv, line 3 -- and a dash", "my--file.csv, line 3 -- and a dash"),
        ("user '--rounds 3' in /data/--out/a.csv", "user '--rounds 3' in /data/--out/a.csv"),
        (
            "--set cutoffs=5,10 or --set reproduction.saturating_bce=true",
            'options={"cutoffs": [5,10]} or options={"reproduction.saturating_bce": "true"}',
        ),
        ("say with --data where, not --dataset", "say with data= where, not --dataset"),
        ("--bob is nobody's option, --domain my-books", "--bob is nobody's option, domain= my-books"),
    ],
)
def test_python_reads_of_keywords_and_the_terminal_of_flags(flags, keywords):
    error = ConfedError(flags)
    assert str(error) == keywords
    assert error.message == flags
