#!/bin/sh
# The replaced script and trace-attr on the same points, map and encoders: seconds by the clock and of the processor,
# MB/s, ratio.
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
import os, resource, subprocess, sys, time

script, folder, binary = sys.argv[1:]
size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)) / 1e6


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(*command):
    begin, used = time.perf_counter(), processor()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin, processor() - used


ours, theirs = [], []
for _ in range(3):
    # In turns, so that both meet the same machine.
    ours.append(seconds(binary, "report", folder, "--format", "json", "--no-cache"))
    theirs.append(seconds(sys.executable, "tests/oracle/script_on_files.py", script, folder))
print(f"{size:.0f} MB, median of three runs")
for at, what in enumerate(["by the clock", "of the processor"]):
    own, script = (sorted(run[at] for run in runs)[1] for runs in (ours, theirs))
    print(what)
    print(f"  trace-attr {own:8.2f} s {size / own:8.1f} MB/s")
    print(f"  script     {script:8.2f} s {size / script:8.1f} MB/s")
    print(f"  ratio      {script / own:8.1f}")
PYTHON
