"""``journeyman tokens audit`` on what is no run."""

from __future__ import annotations

from journeyman.cli.main import main


def test_a_run_that_is_not_there_is_named_as_that_and_not_as_one_without_a_tokenizer(tmp_path, capsys):
    assert main(["tokens", "audit", str(tmp_path / "absent")]) == 2
    assert "is not a directory" in capsys.readouterr().err
    assert main(["tokens", "audit", str(tmp_path)]) == 2
    assert "holds no tokenizer" in capsys.readouterr().err
