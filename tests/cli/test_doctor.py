import json

from typer.testing import CliRunner

from confed.cli.main import app


def test_doctor_reports_versions_and_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv("CONFED_DATA", str(tmp_path))
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / "cache"))
    facts = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert facts["packages"]["confed"] != "not installed"
    assert facts["folders"]["CONFED_DATA"] == str(tmp_path)
    assert facts["datasets"]["ml-1m"] == facts["datasets"]["douban"] == "not at hand"
