"""Methods of other packages, as an installed package would bring them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import confed
from confed.errors import ConfedError
from confed.methods.registry import METHODS, all_methods, method_named

ROOT = Path(__file__).parents[2]
EXAMPLE = re.search(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.DOTALL)[1]
"""The method that CONTRIBUTING.md adds."""
MODULE = (
    EXAMPLE
    + """

class Otherwise(FedAvgMF):
    name = "another-name"

class Silent(DeviceMethod):
    name = "silent"
    title = "says no citation"
    config_class = FederatedConfig
    pieces = FedAvgMF.pieces
"""
)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package beside ours, with the entry points asked for; the folder it is in."""

    def install(**points):
        (tmp_path / "elsewhere_methods.py").write_text(MODULE)
        about = tmp_path / "elsewhere-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
        lines = [f"{name.replace('_', '-')} = elsewhere_methods:{where}" for name, where in points.items()]
        (about / "entry_points.txt").write_text("\n".join(["[confed.methods]", *lines]))
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    yield install
    sys.modules.pop("elsewhere_methods", None)


def test_a_method_of_another_package_is_found_run_and_listed(installed, tmp_path):
    folder = installed(fedavg_mf="FedAvgMF")
    assert method_named("fedavg-mf").title == "FedAvg on matrix factorisation"
    run = confed.run(
        "fedavg-mf",
        "synthetic:users=30,items=60,seed=1",
        rounds=2,
        options={"dim": 4, "negatives": 20},
        folder=tmp_path / "run",
    )
    assert run.summary["hr@10"] > 0
    path = os.pathsep.join([str(folder), *sys.path])
    command = [sys.executable, "-m", "confed.cli.main", "methods", "--json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    told = json.loads(shown.stdout)
    assert [row["name"] for row in told["methods"]] == [*METHODS, "fedavg-mf"]
    assert told["problems"] == []


def test_a_broken_one_is_named_and_takes_nothing_else_with_it(installed):
    installed(fedavg_mf="FedAvgMF", gone="NoSuchClass", wrong="Otherwise", odd="Dot")
    methods, problems = all_methods()
    assert methods.keys() == {*METHODS, "fedavg-mf"}
    assert len(problems) == 3
    with pytest.raises(ConfedError, match=r"method 'gone' of elsewhere .* cannot be loaded .*: mend or uninstall"):
        method_named("gone")
    with pytest.raises(ConfedError, match="with that name is expected there"):
        method_named("wrong")
    assert method_named("pfedrec") is METHODS["pfedrec"]


def test_nobody_takes_a_name_that_is_ours(installed):
    installed(pfedrec="FedAvgMF")
    assert method_named("pfedrec") is METHODS["pfedrec"]
    assert all_methods() == (METHODS, [])


def test_names_elsewhere_are_suggested(installed):
    installed(fedavg_mf="FedAvgMF")
    with pytest.raises(ConfedError, match="did you mean fedavg-mf"):
        method_named("fedavg-fm")


def test_a_method_that_does_not_say_what_it_is_spoils_nothing_for_others(installed):
    installed(silent="Silent")
    with pytest.raises(ConfedError, match=r"method 'silent' of elsewhere .*: it says no citation; mend or uninstall"):
        method_named("silent")
    methods, problems = all_methods()
    assert METHODS.keys() <= methods.keys() and "says no citation" in problems[0]
