"""Copies that memory has no room for."""

import tempfile
from collections import namedtuple

import pytest
import torch

import confed
from confed import copies
from confed.copies import copied, require_room_for_copies
from confed.errors import ConfedError
from confed.testing import tiny
from tests.runs.short import FEW

Memory = namedtuple("Memory", "total available")
Disk = namedtuple("Disk", "free")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Say how much memory and disk there is; temporary files lie in a folder of their own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def has(memory, disk=10**12):
        monkeypatch.setattr(copies.psutil, "virtual_memory", lambda: Memory(memory, memory))
        monkeypatch.setattr(copies.shutil, "disk_usage", lambda _: Disk(disk))

    return has


@pytest.mark.parametrize("memory", [10**12, 0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_a_copy_is_a_copy_wherever_it_is(machine, memory, dtype, tmp_path):
    machine(memory)
    table = torch.arange(24).reshape(2, 3, 4).to(dtype)
    copy = copied({"table": table})["table"]
    table += 1
    assert torch.equal(copy, torch.arange(24).reshape(2, 3, 4).to(dtype)) and copy.dtype == dtype
    copy += 1
    assert torch.equal(copy, table)
    assert list(tmp_path.iterdir()) == [], "the file has no name any more"


def test_only_what_has_no_room_is_mapped(machine, monkeypatch):
    machine(1000)
    mapped = []
    monkeypatch.setattr(copies, "_mapped", lambda shape, dtype: mapped.append(shape) or torch.empty(shape, dtype=dtype))
    copied({"small": torch.zeros(10), "large": torch.zeros(300)})
    assert mapped == [(300,)]


def test_where_neither_has_room_it_is_said(machine, tmp_path):
    machine(0, disk=100)
    with pytest.raises(ConfedError, match=r"neither memory nor .* has room: set TMPDIR to a folder of a larger disk"):
        copied({"table": torch.zeros(1000)})
    assert list(tmp_path.iterdir()) == []


def test_room_is_asked_for_beforehand(machine):
    machine(10**9, disk=10**9)
    require_room_for_copies("tables", 4 * 10**8, 2, "use less")
    require_room_for_copies("tables", 7 * 10**8, 2, "use less")
    with pytest.raises(ConfedError, match=r"takes 1\.4 GB, for which neither memory nor"):
        require_room_for_copies("tables", 7 * 10**8, 3, "use less")
    with pytest.raises(ConfedError, match=r"tables takes 0\.9 GB and this machine has 1\.0 GB: use less"):
        require_room_for_copies("tables", 9 * 10**8, 2, "use less")


@pytest.mark.parametrize("method", ["cofedrec", "pfedrec"])
def test_a_run_does_not_care_where_its_best_round_is(method, machine, tmp_path, monkeypatch):
    def trained(folder):
        return confed.run(method, tiny.interactions(), rounds=3, options=FEW, folder=tmp_path / folder)

    usual = trained("usual")
    real = copies.psutil.virtual_memory()
    monkeypatch.setattr(copies.psutil, "virtual_memory", lambda: Memory(real.total, 0))
    mapped = trained("mapped")
    assert mapped.metrics == usual.metrics
    best = mapped.best_state()
    assert all(torch.equal(tensor, best[name]) for name, tensor in usual.best_state().items())
