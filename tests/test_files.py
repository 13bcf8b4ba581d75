from pathlib import Path

import pytest

from confed.files import written_beside


def test_written_beside_replaces_or_leaves_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.txt"
    with written_beside(path) as draft:
        draft.write_text("one")
        assert not path.exists()
    assert path.read_text() == "one"
    with pytest.raises(RuntimeError), written_beside(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]
