"""Tests that Ivy fetches JARs from a folder, and that a JAR must match its digest, if known."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flink_triage.errors import EnvironmentProblem
from flink_triage.spark.runtime import jars
from flink_triage.spark.runtime.jars import Jar, cached_jars, delta_jars, ensure_jars

SETTINGS = """
<ivysettings>
  <settings defaultResolver="folder"/>
  <resolvers>
    <ibiblio name="folder" m2compatible="true" root="{root}"/>
  </resolvers>
</ivysettings>
"""
POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>{0.group}</groupId>"
    "<artifactId>{0.artifact}</artifactId><version>{0.version}</version></project>"
)
Publish = Callable[[Jar, bytes, str], None]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """A function that adds a JAR and its SHA-1 checksum to the repository used by Ivy."""
    repository = tmp_path / "repository"
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(SETTINGS.format(root=f"{repository.as_uri()}/"), "utf-8")
    monkeypatch.setenv(jars.IVY_SETTINGS_VARIABLE, str(settings))

    def publish(jar: Jar, data: bytes, sha1: str) -> None:
        folder = repository / jar.group.replace(".", "/") / jar.artifact / jar.version
        folder.mkdir(parents=True)
        (folder / jar.file_name).write_bytes(data)
        (folder / f"{jar.file_name}.sha1").write_text(sha1, "utf-8")
        pom = folder / f"{jar.artifact}-{jar.version}.pom"
        pom.write_text(POM.format(jar), "utf-8")

    return publish


def sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def test_published_jars_are_fetched_into_a_private_folder(publish: Publish, tmp_path: Path) -> None:
    data = [path.read_bytes() for path in ensure_jars()]
    for jar, content in zip(delta_jars(), data, strict=True):
        publish(jar, content, sha1(content))
    cache = tmp_path / "cache" / "jars"
    assert [path.read_bytes() for path in ensure_jars(cache)] == data
    assert cache.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in cache.iterdir()} == {jar.file_name for jar in delta_jars()}

    # A damaged file is fetched again.
    first = cache / delta_jars()[0].file_name
    first.write_bytes(data[0][:-1] + b"\x01")
    assert cached_jars(cache) is None
    assert ensure_jars(cache)[0].read_bytes() == data[0]


def test_a_jar_other_than_the_published_one_is_refused(publish: Publish, tmp_path: Path) -> None:
    data = ensure_jars()[1].read_bytes() + b"\x00"
    for jar in delta_jars():
        publish(jar, data, sha1(data))
    with pytest.raises(EnvironmentProblem) as raised:
        ensure_jars(tmp_path / "cache")
    digests = jars._digests()
    name = delta_jars()[0].file_name
    checksum = hashlib.sha256(data).hexdigest()
    message = f"{name}: Ivy fetched a file with the SHA-256 checksum {checksum}, "
    message += f"expected {digests[name]}; copy the JAR to {tmp_path / 'cache'}, or set "
    assert str(raised.value).startswith(message)
    assert list((tmp_path / "cache").iterdir()) == []


def test_ivy_checks_a_version_without_a_known_digest(
    publish: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = ensure_jars()[1]
    untested = Jar("io.delta", "delta-storage", "99.0.0")
    monkeypatch.setattr(jars, "delta_jars", lambda: (untested,))
    cache = tmp_path / "cache"
    data = tested.read_bytes()
    publish(untested, data, sha1(b"other bytes"))
    with pytest.raises(EnvironmentProblem, match=r"Ivy could not fetch it \(.*invalid sha1"):
        ensure_jars(cache)
    shutil.rmtree(tmp_path / "repository")
    publish(untested, data, sha1(data))
    assert [path.read_bytes() for path in ensure_jars(cache)] == [data]


def test_the_digests_are_those_of_the_tested_versions() -> None:
    assert {jar.file_name for jar in delta_jars()} <= jars._digests().keys()
    folders = {Path(path).parent.name for path in jars._digests()} - {""}
    assert folders == {f"s3a-{version}" for version in jars.AWS_SDK_VERSIONS}
