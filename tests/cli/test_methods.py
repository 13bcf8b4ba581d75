import json

import pytest
from typer.testing import CliRunner

from confed.cli.main import app
from confed.errors import ConfedError
from confed.methods.registry import METHODS


def invoke(*arguments):
    return CliRunner().invoke(app, arguments)


def test_every_method_is_listed():
    listed = json.loads(invoke("methods", "--json").stdout)["methods"]
    assert [row["name"] for row in listed] == list(METHODS)
    assert {row["kind"] for row in listed} == {"federated", "silo", "central", "control"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_explains_itself(name):
    facts = json.loads(invoke("methods", "show", name, "--json").stdout)
    assert facts["about"] and facts["citation"]
    assert all(option["meaning"] for option in facts["options"])
    assert invoke("methods", "show", name).exit_code == 0


def test_lists_keep_their_lines():
    about = json.loads(invoke("methods", "show", "etl-f", "--json").stdout)["about"]
    assert "\n    etl-f    FPPDM's exchange" in about
    assert "print no formulas; the table" in about, "what is not a list is one line, for the terminal to wrap"


def test_what_travels_is_shown():
    facts = json.loads(invoke("methods", "show", "fedncf", "--json").stdout)
    assert "samples" in facts["uploads"] and "number of rows" in facts["discloses"]
    assert facts["published"]["ml-100k"][0]["hr"] == 60.13


def test_unknown_method():
    assert isinstance(invoke("methods", "show", "fedncff").exception, ConfedError)


def test_a_method_between_companies_says_what_travels():
    facts = json.loads(invoke("methods", "show", "fppdm++", "--json").stdout)
    assert facts["uploads"] == ["deviation", "loss", "mean"]
    assert facts["view"] == "local"
    assert "salted hashes" in facts["discloses"]


def test_defaults_and_published_figures_are_lines_a_person_can_read():
    text = invoke("methods", "show", "cofedrec").stdout
    assert "  lastfm-2k: learning_rate = 0.05, contrast = 0.001, temperature = 0.5, clusters = 500" in text
    assert "  ml-100k: 77.52 / 50.65, sampled ranking (CoFedRec (WWW 2024), table 1)" in text
    assert "{" not in text.split("defaults per dataset:")[1]
