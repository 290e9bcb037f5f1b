"""``cdcfmt new``: the plugin is usable at once, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path

from support.cli_tools import run


def test_new_plugin_and_next_command(tmp_path: Path) -> None:
    result = run("new", "acme-json", "--folder", tmp_path)
    assert result.exit_code == 0
    folder = tmp_path / "cdcfmt-acme-json"
    assert (folder / "src/cdcfmt_acme_json/encode.py").is_file()
    assert f"pip install -e '{folder}[test]'" in result.stdout
    assert f"pytest {folder}" in result.stdout


def test_plugins_that_cannot_be_created(tmp_path: Path) -> None:
    assert run("new", "acme", "--folder", tmp_path).exit_code == 0
    again = run("new", "acme", "--folder", tmp_path)
    assert again.exit_code == 2
    assert "already exists: remove it, or choose another name" in again.stderr
    bad = run("new", "Acme JSON", "--folder", tmp_path)
    assert bad.exit_code == 2
    assert "is not a valid name of a format" in bad.stderr
    taken = run("new", "debezium", "--folder", tmp_path)
    assert taken.exit_code == 2
    assert "there is already a format 'debezium'" in taken.stderr
    transport = run("new", "kafka", "--folder", tmp_path)
    assert transport.exit_code == 2
    assert transport.stderr == (
        "error: there is already a transport 'kafka': choose another name\n"
    )
    (tmp_path / "file").touch()
    unwritable = run("new", "other", "--folder", tmp_path / "file" / "below")
    assert unwritable.exit_code == 3
    assert [path.name for path in tmp_path.glob("cdcfmt-*")] == ["cdcfmt-acme"]
