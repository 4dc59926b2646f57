"""What every test stands on: one Hypothesis profile, the same on every machine, and a PostgreSQL for those who ask."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

from tests.postgres import own_postgres, postgres, postgres_url

__all__ = ["own_postgres", "postgres", "postgres_url"]

# A slow machine is no defect, so no deadline and no complaint about slow data.
settings.register_profile("outfitter", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outfitter")

# Whoever runs the tests in the background has Ctrl-C ignored, and every program that they start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
