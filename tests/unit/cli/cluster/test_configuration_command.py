"""`quorate configuration`: the cluster file in force, and what is said where nobody, or not everybody, tells it."""

import json
from pathlib import Path

from msgspec.structs import replace

from quorate.api_specs.cluster import from_json, parse
from quorate.cli.cluster.configuration_command import text_in_force
from quorate.cli.cluster.document import new_document, read_document
from quorate.cli.cluster.local_cluster import LocalCluster
from tests.unit.cli.conftest import run_at


def test_what_is_in_force_is_a_cluster_file_of_the_same_meaning(
    running: LocalCluster, tmp_path: Path
) -> None:
    code, out, err = run_at(running, "configuration")
    assert (code, err) == (0, "")
    assert out.startswith('# Cluster "local", configuration 0.\nname = "local"\n')
    assert parse(out) == read_document(running.document_path)
    assert run_at(running, "choice", "set", "queue/jobs", "Enq=0,1", "Deq=3,1")[0] == 0
    code, out, _ = run_at(running, "configuration")
    assert (code, out.splitlines()[0]) == (0, '# Cluster "local", configuration 2.')
    assert parse(out).choices[0].classes == {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}
    new = tmp_path / "new.toml"
    new.write_text(out)
    code, out, _ = run_at(running, "change", str(new), "--dry-run")
    assert (code, out) == (0, "Nothing would change.\n")
    told = json.loads(run_at(running, "configuration", "--json")[1])
    document = from_json(told["document"])
    assert (told["epoch"], told["hash"]) == (2, document.hash)
    assert document.choices == parse(new.read_text()).choices


def test_who_does_not_answer_is_told_and_without_anybody_nothing_is_in_force(running: LocalCluster) -> None:
    running.kill("r3")
    code, out, err = run_at(running, "configuration")
    assert (code, err) == (0, "r3 did not answer, and may know of a later configuration.\n")
    assert parse(out) == read_document(running.document_path)
    for replica in ("r1", "r2"):
        running.kill(replica)
    code, out, err = run_at(running, "configuration")
    assert (code, out) == (1, "")
    assert "No replica tells which configuration is in force: r1: " in err
    assert run_at(running, "choice", "show")[0] == 1


def test_while_the_cluster_changes_the_new_one_is_written_and_called_that() -> None:
    file = parse(new_document({"r1": "http://127.0.0.1:8001"}))
    changing = replace(file, name='a\n"b\x7f"', choices=file.choices[1:], epoch=3, old=replace(file, epoch=2))
    text = text_in_force(changing)
    assert text.startswith(
        '# Cluster "a\\n\\"b\\u007f\\"", configuration 3.\n# The cluster changes to what stands here.'
    )
    assert parse(text).choices == file.choices[1:]
