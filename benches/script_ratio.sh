#!/bin/sh
# The replaced script and trace-attr on the same points, map and encoders: seconds, MB/s, ratio.
#
#   benches/script_ratio.sh SCRIPT [MB]
#
# SCRIPT is the script that the tool replaces; it is run through tests/oracle/script_on_files.py, without xctrace.
set -eu
script=$(realpath "${1:?usage: benches/script_ratio.sh SCRIPT [MB]}")
megabytes=${2:-64}
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
folder=$target/bench-data/script-$megabytes
cargo build --release --quiet --bin trace-attr --example make_export
[ -d "$folder" ] || "$target/release/examples/make_export" "$folder" "$megabytes"
exec python3 - "$script" "$folder" "$target/release/trace-attr" <<'PYTHON'
import os, subprocess, sys, time

script, folder, binary = sys.argv[1:]
size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)) / 1e6


def seconds(*command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


ours, theirs = [], []
for _ in range(3):
    # In turns, so that both meet the same machine.
    ours.append(seconds(binary, "report", folder, "--format", "json"))
    theirs.append(seconds(sys.executable, "tests/oracle/script_on_files.py", script, folder))
ours, theirs = sorted(ours)[1], sorted(theirs)[1]
print(f"{size:.0f} MB, median of three runs")
print(f"trace-attr {ours:8.2f} s {size / ours:8.1f} MB/s")
print(f"script     {theirs:8.2f} s {size / theirs:8.1f} MB/s")
print(f"ratio      {theirs / ours:8.1f}")
PYTHON
