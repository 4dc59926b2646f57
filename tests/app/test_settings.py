"""The settings of the process: read from the environment, wrong ones refused, no secret shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.app import Settings
from outfitter.errors import Invalid


def test_nothing_set_gives_the_defaults() -> None:
    settings = Settings.read({"OUTFITTER_DATABASE": "", "OUTFITTER_KEEP_DAYS": ""})
    assert (settings.catalog, settings.database, settings.keep_days) == (Path("outfitter"), None, None)


@pytest.mark.promise("GW-AUDIT-SECRET")
def test_the_url_of_the_database_is_in_no_text_of_the_settings() -> None:
    settings = Settings.read({"OUTFITTER_DATABASE": "postgresql://me:hunter2@h/x", "OUTFITTER_KEEP_DAYS": "1.5"})
    assert settings.keep_days == 1.5
    assert settings.database is not None
    for text in (str(settings), repr(settings), f"{settings.database}"):
        assert "hunter2" not in text
        assert "postgresql" not in text


@pytest.mark.parametrize("days", ["0", "-1", "nan", "inf", "a week"])
def test_days_that_are_no_number_of_days_are_refused(days: str) -> None:
    with pytest.raises(Invalid, match="OUTFITTER_KEEP_DAYS"):
        Settings.read({"OUTFITTER_KEEP_DAYS": days})


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "a minute"])
def test_a_silence_that_is_no_number_of_seconds_is_refused(seconds: str) -> None:
    assert Settings.read({"OUTFITTER_RUNNER_SILENCE": "20"}).runner_silence == 20
    with pytest.raises(Invalid, match="OUTFITTER_RUNNER_SILENCE"):
        Settings.read({"OUTFITTER_RUNNER_SILENCE": seconds})
