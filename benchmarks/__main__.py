"""Run every benchmark and print the table; exit code 1 when a limit is not kept."""

from __future__ import annotations

import sys

from benchmarks import (
    bench_adapters,
    bench_api,
    bench_bridge,
    bench_dashboard,
    bench_gateway,
    bench_gateway_size,
    bench_governing,
    bench_import,
    bench_link,
    bench_load,
    bench_prompt,
    bench_resolve,
    bench_runner,
    bench_schemas,
    bench_squad,
)

BENCHES = (
    bench_resolve, bench_load, bench_prompt, bench_schemas, bench_import, bench_link, bench_bridge, bench_adapters,
    bench_gateway, bench_gateway_size, bench_governing, bench_api,
    bench_runner, bench_squad, bench_dashboard,
)  # fmt: skip


def main() -> int:
    """Measure everything and print one row each."""
    print("| what | against | ratio | limit | |\n|---|---|---|---|---|")
    is_kept = True
    for bench in BENCHES:
        for ratio in bench.measure():
            is_kept = is_kept and ratio.is_kept
            mark = "kept" if ratio.is_kept else "**not kept**"
            row = f"| {ratio.what} ({ratio.text(ratio.subject)}) | {ratio.against} ({ratio.text(ratio.yardstick)}) "
            print(f"{row}| {ratio.value:.2f} | {ratio.limit:g} | {mark} |", flush=True)
    return 0 if is_kept else 1


sys.exit(main())
