"""The people of a site: names that cannot be doubled, and a file that is written completely."""

import stat
from pathlib import Path

import pytest

from dpcausal.errors import StudyError
from dpcausal.federation.site.people import PEOPLE, People, Person, add_person, identity, remove_person, set_console_key

KEY, OTHER = "ab" * 32, "cd" * 32


def test_people_are_read_as_they_were_added(tmp_path: Path) -> None:
    assert People.read(tmp_path) == People()
    adams = Person("Dr.  Adams ", ("approver", "reader"), key=KEY)
    add_person(tmp_path, adams)
    add_person(tmp_path, Person("Brown", ("reader",), login="subject-2"))
    set_console_key(tmp_path, OTHER)
    people = People.read(tmp_path)
    assert people.console_key == OTHER
    assert [person.name for person in people.people] == ["Dr. Adams", "Brown"]
    assert people.named("DR. ADAMS") == people.with_key(KEY) == adams
    assert people.with_login("subject-2") == people.named("brown")
    assert (people.named("nobody"), people.with_login(""), people.with_key("")) == (None, None, None)
    assert stat.S_IMODE((tmp_path / PEOPLE).stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == [PEOPLE]
    assert remove_person(tmp_path, " dr. adams") == adams
    assert [person.name for person in People.read(tmp_path).people] == ["Brown"]
    with pytest.raises(StudyError, match="dpcausal site people list"):
        remove_person(tmp_path, "Adams")


@pytest.mark.parametrize("name", ["Dr. Adams ", "dr. adams", "Dr.\u00a0Adams", "\uff24r. Adams", "Dr. Adam\u017f"])
def test_spellings_of_one_name_are_one_person(tmp_path: Path, name: str) -> None:
    assert identity(name) == identity("Dr. Adams")
    add_person(tmp_path, Person("Dr. Adams", ("approver",), key=KEY))
    with pytest.raises(StudyError, match="have the same name"):
        add_person(tmp_path, Person(name, ("approver",), key=OTHER))


def test_two_people_cannot_share_a_key_or_a_login(tmp_path: Path) -> None:
    add_person(tmp_path, Person("Adams", ("approver",), key=KEY, login="one"))
    for other in (Person("Brown", ("approver",), key=KEY), Person("Brown", ("approver",), key=OTHER, login="one")):
        with pytest.raises(StudyError, match=r"have the same (key|login)"):
            add_person(tmp_path, other)
    with pytest.raises(StudyError, match="have the same key"):
        set_console_key(tmp_path, KEY)


@pytest.mark.parametrize(
    "attributes",
    [
        {"name": ""},
        {"name": "Ad\x1bams"},
        {"name": "Ad\u200bams"},
        {"name": "a" * 101},
        {"name": 7},
        {"roles": ()},
        {"roles": ("owner",)},
        {"roles": 7},
        {"key": "ab12"},
        {"key": 0},
        {"key": ""},
        {"login": "\n"},
        {"login": "x" * 201},
    ],
    ids=str,
)
def test_unusable_people_are_refused(attributes: dict[str, object]) -> None:
    with pytest.raises(StudyError):
        Person(**{"name": "Adams", "roles": ("approver",), "key": KEY} | attributes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "version = 2",
        "people = []",
        "version = 1\nmore = 1",
        "version = 1\npeople = 7",
        "version = 1\nconsole_key = 'x'",
        "version = 1\n[[people]]\nname = 'Adams'",
        "version = 1\n[[people]]\nname = 'Adams'\nroles = ['reader']\nmore = 1",
        "= =",
        "\x00",
    ],
)
def test_unreadable_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / PEOPLE).write_text(text)
    with pytest.raises(StudyError):
        People.read(tmp_path)


def test_file_that_cannot_be_written_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_person(tmp_path, Person("Adams", ("approver",), key=KEY))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StudyError, match="No space left"):
        add_person(tmp_path, Person("Brown", ("approver",), key=OTHER))
    assert [person.name for person in People.read(tmp_path).people] == ["Adams"]
    assert [file.name for file in tmp_path.iterdir()] == [PEOPLE]
