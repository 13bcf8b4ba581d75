import pytest

from confed.data.recognition import content_hashes
from confed.errors import ConfedError
from confed.runs.settings import Settings, defaults_in_words, resolve


def test_options_go_to_the_method_or_to_the_protocol():
    settings = resolve("pfedrec", "ml-100k", options={"batch_size": 64, "neg_pool": "unseen"}, rounds=7, seed=3)
    assert settings.config().batch_size == 64
    assert settings.protocol.neg_pool == "unseen"
    assert (settings.rounds, settings.seed) == (7, 3)


def test_a_dot_reaches_into_a_section():
    settings = resolve("pfedrec", "ml-100k", options={"reproduction.saturating_bce": True})
    assert settings.config().reproduction.saturating_bce


def test_defaults_of_method_and_dataset():
    assert resolve("scalar", "ml-100k").rounds == 50
    assert resolve("scalar", "ml-100k").patience is None


def test_a_methods_own_patience_goes_with_its_own_rounds():
    ours = resolve("fppdm++", "douban", protocol="warm")
    assert (ours.rounds, ours.patience) == (50, 10)
    assert resolve("fppdm++", "douban", protocol="warm", rounds=50).patience is None
    assert resolve("fppdm++", "douban", protocol="warm", patience=3).patience == 3
    assert resolve("fppdm++", "douban", protocol="warm", rounds=7, patience=3).patience == 3


def test_defaults_are_those_of_what_the_data_is_known_to_be_not_of_what_it_is_called():
    assert resolve("pfedrec", "mine", known="lastfm-2k").config().learning_rate == 0.05
    assert resolve("pfedrec", "lastfm-2k").config().learning_rate == 0.1
    with pytest.raises(ConfedError, match=r"known = 'mine': the catalogue has no such dataset"):
        resolve("pfedrec", "mine", known="mine")


@pytest.mark.parametrize(
    ("known", "options", "line"),
    [
        (None, {}, "what pfedrec has for any data, as this is none of the datasets that papers tuned it for"),
        (
            "douban",
            {},
            "what pfedrec has for any data (by its content this data is douban, for which it has nothing else)",
        ),
        (
            "lastfm-2k",
            {},
            "what pfedrec has for lastfm-2k (by its content this data is lastfm-2k): learning_rate = 0.05, "
            "item_rate_factor = 80.0",
        ),
        (
            "lastfm-2k",
            {"learning_rate": 0.2, "item_rate_factor": 8},
            "what pfedrec has for lastfm-2k (by its content this data is lastfm-2k): all of it overruled by options",
        ),
    ],
)
def test_a_line_says_which_defaults_count(known, options, line):
    assert defaults_in_words(resolve("pfedrec", "mine", known=known, options=options)) == line


@pytest.mark.parametrize(("known", "filters"), [("lastfm-2k", True), ("douban", True), ("ml-1m", False)])
def test_the_line_says_where_a_filter_acts(known, filters):
    (whole,) = content_hashes(known)
    settings = resolve("pfedrec", "mine", known=known)
    for content_hash, acts in ((whole, False), ("another", filters)):
        line = defaults_in_words(settings.model_copy(update={"content_hash": content_hash}))
        assert (f"this data is {known} once its filter is applied" in line) == acts
    by_name = resolve("pfedrec", known, known=known).model_copy(update={"content_hash": "of a copy nobody has hashed"})
    assert "filter" not in defaults_in_words(by_name), "what is loaded by its name is filtered already"


def test_a_config_without_known_is_of_what_its_data_was_called(tmp_path):
    for dataset, known in (("ml-100k", "ml-100k"), ("douban", "douban"), ("mine.csv", None)):
        told = resolve("popularity", dataset).to_toml()
        (tmp_path / "config.toml").write_text(told.replace('known = ""\n', ""))
        assert Settings.from_toml(tmp_path / "config.toml").known == known


@pytest.mark.parametrize("known", [None, "ml-100k", "ml-1m"])
def test_what_data_is_known_to_be_survives_a_file_whatever_it_is_called(tmp_path, known):
    (tmp_path / "config.toml").write_text(resolve("popularity", "ml-100k", known=known).to_toml())
    assert Settings.from_toml(tmp_path / "config.toml").known == known


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resolve("pfedrek", "x"), "unknown method 'pfedrek': did you mean pfedrec"),
        (
            lambda: resolve("fppdm", "x", options={"clusters": 3}),
            "unknown option 'clusters' of fppdm: it belongs to cofedrec, fppdm++, etl-fc",
        ),
        (lambda: resolve("fppdm", "x", options={"patience": 3}), "a setting of the run: patience="),
        (lambda: resolve("fppdm", "x", dim=3), "say options={'dim': …}"),
        (lambda: resolve("fppdm", "x", method_options={"dim": 3}), "unknown setting 'method_options'"),
        (lambda: resolve("fppdm", "x", reading={"user": "who"}), "unknown setting 'reading'"),
        (lambda: resolve("pfedrec", "x", protocol="papr"), "unknown protocol 'papr': did you mean paper"),
        (
            lambda: resolve("pfedrec", "x", options={"batchsize": 1}),
            "unknown option 'batchsize': did you mean batch_size",
        ),
        (lambda: resolve("pfedrec", "x", options={"batch_size": 0}), "method pfedrec: batch_size = 0"),
        (lambda: resolve("pfedrec", "x", options={"dim": "wide"}), "method pfedrec: dim = 'wide'"),
        (lambda: resolve("pfedrec", "x", options={"rank_ties": "won"}), "protocol strict: rank_ties = 'won'"),
        (lambda: resolve("pfedrec", "x", rounds=0), "run: rounds = 0"),
        (lambda: resolve("pfedrec", "x", chunk=0), "run: chunk = 0"),
        (lambda: resolve("fppdm", "x", chunk=8), "chunk does nothing here, leave it out: fppdm"),
        (lambda: resolve("pfedrec", "x", options={"reproduction.typo": 1}), "reproduction.typo"),
    ],
)
def test_mistakes_name_the_option(call, message):
    with pytest.raises(ConfedError) as error:
        call()
    assert message in str(error.value)


def test_written_settings_read_back(tmp_path):
    settings = resolve(
        "fedncf", "ml-1m", known="ml-1m", protocol="paper", options={"variant": "gmf"}, patience=4, chunk=9
    )
    path = tmp_path / "config.toml"
    path.write_text(settings.to_toml())
    assert Settings.from_toml(path) == settings


def test_what_was_said_about_columns_is_written_down_and_nothing_is_not(tmp_path):
    nothing = resolve("popularity", "mine.csv")
    assert "reading" not in nothing.to_toml() and "reading" not in nothing.model_dump(), "older records have none"
    said = nothing.model_copy(update={"reading": {"user": "who", "date_order": "dmy"}})
    path = tmp_path / "config.toml"
    path.write_text(said.to_toml())
    assert Settings.from_toml(path) == said
    path.write_text(said.to_toml().replace("date_order", "sheet"))
    with pytest.raises(ConfedError, match=r"config\.toml: reading\.sheet"):
        Settings.from_toml(path)
