"""What a group of errors was about, when it is a group of one."""

from __future__ import annotations

from typing import cast


def the_one_in(error: BaseExceptionGroup[BaseException]) -> BaseException:
    """What a group of one was about."""
    if len(error.exceptions) != 1:
        return error
    inner = error.exceptions[0]
    return (
        the_one_in(cast("BaseExceptionGroup[BaseException]", inner)) if isinstance(inner, BaseExceptionGroup) else inner
    )
