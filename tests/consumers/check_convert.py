"""What each consumer reads from the files that `convert` writes. Run by tests/consumers/run, which installs them.

    check_convert.py BINARY [--all]     --all also tries what is large to install: Chromium, Go, inferno

Every number is held against the JSON report of the same inputs.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import hatchet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

BINARY = pathlib.Path(sys.argv[1]).resolve()
ALL = "--all" in sys.argv[2:]
ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "target/consumers"
A, B = ([f"fixtures/demo/{side}-{n}" for n in (1, 2, 3)] for side in ("hf2q", "llama"))
LIVE = "tests/live_sample/profile.json"


def trace_attr(*arguments):
    ran = subprocess.run([BINARY, *arguments], cwd=ROOT, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


def phases(inputs):
    """ns of each phase, over all trials."""
    report = json.loads(trace_attr("report", *inputs, "--format", "json"))
    return {
        row["key"]: sum(trial["total_ns"] for trial in row["a"]["trials"]) for row in report["phases"]
    }


class Files:
    """The demo in every format, one side and both."""

    def __init__(self, folder):
        self.folder = folder
        self.a, self.b = phases(A), phases(B)

    def write(self, name, *arguments):
        path = self.folder / name
        trace_attr("convert", *arguments, "-o", path)
        return path

    def both(self):
        total = collections.Counter(self.a)
        total.update(self.b)
        return dict(total)


def check_perfetto(files):
    """The packets, by Perfetto's own schema: what trace_processor asks of them, and the totals."""
    trace = perfetto.Trace()
    trace.ParseFromString(files.write("both.pftrace", "--a", *A, "--b", *B).read_bytes())
    assert not unknown_fields(trace)
    begin, end = perfetto.TrackEvent.TYPE_SLICE_BEGIN, perfetto.TrackEvent.TYPE_SLICE_END
    tracks, names, totals, open_slices, origins = {}, {}, collections.Counter(), collections.defaultdict(list), {}
    for at, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id == 1
        assert bool(packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED) == (at == 0)
        for entry in packet.interned_data.event_names:
            assert entry.iid > 0
            names[entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert not track.parent_uuid or track.parent_uuid in tracks
            tracks[track.uuid] = track
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in tracks
        stack = open_slices[event.track_uuid]
        if event.type == begin:
            assert packet.sequence_flags & packet.SEQ_NEEDS_INCREMENTAL_STATE
            assert not stack or stack[-1][0] <= packet.timestamp
            origins.setdefault(tracks[event.track_uuid].parent_uuid, packet.timestamp)
            stack.append((packet.timestamp, names[event.name_iid]))
        elif event.type == end:
            start, name = stack.pop()
            totals[name] += packet.timestamp - start
    assert not any(open_slices.values()), "everything that begins ends"
    assert dict(totals) == files.both(), "phases have their times"
    assert sorted(origins.values()) == [0] * 6, "each trial begins at its first submission"
    groups = [track.name for track in tracks.values() if track.child_ordering]
    assert groups[:2] == ["hf2q · hf2q-1", "hf2q · hf2q-2"], groups
    return f"{len(trace.packet)} packets of 6 trials, {len(totals)} phases"


def unknown_fields(message):
    """Whether any message has a field that the schema does not know: encoding it anew would lose or move it."""
    from google.protobuf import unknown_fields as unknown

    if len(unknown.UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            several = value if not hasattr(value, "ListFields") else [value]
            if any(unknown_fields(one) for one in several):
                return True
    return False


def check_hatchet(files):
    """Self values add up to phases; two files subtract."""
    literals = [json.loads(trace_attr("convert", *side, "--name", "engine", "--to", "hatchet")) for side in (A, B)]
    frames = [hatchet.GraphFrame.from_literal(literal) for literal in literals]
    inclusive = lambda frame, kind: {
        node.frame["name"]: int(row["gpu_ns (inc)"])
        for node, row in frame.dataframe.iterrows()
        if node.frame["type"] == kind
    }
    for frame, expected in zip(frames, (files.a, files.b)):
        frame.update_inclusive_columns()
        assert inclusive(frame, "phase") == expected
        assert inclusive(frame, "root") == {"all": sum(expected.values())}
    # Inclusive columns first: a frame that only one of them has is NaN in what Hatchet subtracts.
    difference = frames[0] - frames[1]
    assert inclusive(difference, "root") == {"all": sum(files.a.values()) - sum(files.b.values())}
    return f"{len(frames[0].dataframe)} and {len(frames[1].dataframe)} frames, inclusive times and difference right"


def check_folded(files):
    """Lines by the grammar, always; the graphs of inferno with --all."""
    text = trace_attr("convert", *A, "--to", "folded").decode()
    totals = collections.Counter()
    for line in text.splitlines():
        match = re.fullmatch(r"([^;]+;){4}([^;]+) (\d+)", line)
        assert match, line
        totals[line.split(";")[2]] += int(match[3])
    assert dict(totals) == files.a
    inferno = tool_inferno()
    if not inferno:
        return f"{len(text.splitlines())} stacks by the grammar ({'no inferno: it could not be installed' if ALL else 'inferno: only with --all'})"
    graph = lambda input: subprocess.run([inferno, "--minwidth", "0"], input=input, capture_output=True, check=True)
    ran = graph(text.encode())
    svg = ran.stdout.decode()
    for phase, ns in files.a.items():
        assert f"<title>{phase} ({ns:,} samples" in svg, phase
    difference = trace_attr("convert", "--a", *A, "--b", *B, "--to", "folded-diff")
    svg = graph(difference).stdout.decode()
    # The width is A's time, the percentage what it grew by over B's.
    (all_of_a,) = re.findall(r"<title>all \(([\d,]+) samples, 100%", svg)
    assert int(all_of_a.replace(",", "")) == sum(files.a.values())
    assert re.search(r"samples, [\d.]+%; [+-][\d.]+%\)", svg), "the graph is differential"
    return f"{len(text.splitlines())} stacks, inferno draws {all_of_a} ns and a differential graph"


def tool_inferno():
    found = shutil.which("inferno-flamegraph") or shutil.which("inferno-flamegraph", path=str(TOOLS / "cargo/bin"))
    if not found and ALL and shutil.which("cargo"):
        command = ["cargo", "install", "--quiet", "inferno", "--locked", "--root", str(TOOLS / "cargo")]
        subprocess.run(command, capture_output=True, timeout=600)
        found = shutil.which("inferno-flamegraph", path=str(TOOLS / "cargo/bin"))
    return found


def check_pprof(files):
    """`go tool pprof`: cumulative times of phases, and the difference of two files."""
    go = shutil.which("go")
    if not go:
        return "not tried: no Go"
    a, b = files.write("a.pb.gz", *A), files.write("b.pb.gz", *B)

    def top(*arguments):
        command = [go, "tool", "pprof", "-top", "-cum", "-unit=ns", "-nodecount=1000", "-nodefraction=0", *arguments]
        environment = {**os.environ, "PPROF_TMPDIR": str(files.folder)}
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        rows = re.findall(r"^\s*(-?\d+)(?:ns)?\s+\S+\s+\S+\s+(-?\d+)(?:ns)?\s+\S+\s+(.+)$", ran.stdout, re.MULTILINE)
        return {name: int(cum) for _, cum, name in rows}, ran.stdout

    found, text = top(str(a))
    assert {name: found[name] for name in files.a} == files.a, text
    difference, text = top(f"-diff_base={b}", str(a))
    for phase in files.a.keys() | files.b.keys():
        assert difference.get(phase, 0) == files.a.get(phase, 0) - files.b.get(phase, 0), (phase, text)
    raw = subprocess.run([go, "tool", "pprof", "-raw", str(a)], capture_output=True, text=True, check=True).stdout
    assert "gpu_time/nanoseconds[dflt] submissions/count" in raw, raw[:400]
    comments = subprocess.run([go, "tool", "pprof", "-comments", str(a)], capture_output=True, text=True, check=True).stdout
    assert '"input":"hf2q-1"' in comments, comments
    return f"{len(found)} functions, -diff_base right for {len(files.a.keys() | files.b.keys())} phases"


def tool_node(*packages):
    """The folder of npm packages, installed once for these tests; None where that cannot be."""
    if not shutil.which("node") or not shutil.which("npm"):
        return None
    place = TOOLS / "node"
    if not all((place / "node_modules" / package.rpartition("@")[0]).exists() for package in packages):
        place.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, *packages]
        environment = {**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
        if subprocess.run(command, capture_output=True, timeout=240, env=environment).returncode != 0:
            return None
    return place / "node_modules"


def check_speedscope_schema(files):
    """speedscope's own JSON against the schema in its package, with ajv."""
    modules = tool_node("speedscope@1.25.0", "ajv@8.20.0")
    if not modules:
        return "not tried: no npm, or the packages could not be installed"
    schemas = list((modules / "speedscope").rglob("file-format-schema.json"))
    assert len(schemas) == 1, schemas
    file = files.write("both.speedscope.json", "--a", *A, "--b", *B)
    ran = subprocess.run(["node", "-e", AJV, modules, schemas[0], file], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout == "valid\n", ran.stdout + ran.stderr
    return "valid by ajv"


AJV = """
const [modules, schema, file] = process.argv.slice(1);
const fs = require("fs");
const Ajv = require(modules + "/ajv");
const read = (path) => JSON.parse(fs.readFileSync(path, "utf8"));
const validate = new (Ajv.default ?? Ajv)({ strict: false }).compile(read(schema));
console.log(validate(read(file)) ? "valid" : JSON.stringify(validate.errors));
"""


def check_speedscope(files):
    """Chrome trace, folded stacks and speedscope's own JSON, loaded in a browser: names and totals of its table."""
    if not ALL:
        return "only with --all"
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    modules = tool_node("speedscope@1.25.0", "playwright-core@1.65.1")
    if not chromium or not modules:
        return "not tried: " + ("no chromium" if not chromium else "no npm, or the packages could not be installed")
    (page,) = [path for path in (modules / "speedscope").rglob("index.html") if "release" in path.parts]
    one = phases(A[:1])
    live = json.loads((ROOT / LIVE).read_text(encoding="utf-8"))
    spans = [(e["name"], e["gpu"]) for e in live["events"] if e["gpu"] and e["gpu"]["start_ns"] is not None]
    softmax = {"softmax": sum(gpu["end_ns"] - gpu["start_ns"] for name, gpu in spans if name == "softmax")}
    # A file, the profiles of it that are looked at, and what those must add up to.
    lanes, trees = (lambda name: " · " in name), (lambda name: " · " not in name)
    wanted = [
        (files.write("one.speedscope.json", A[0]), lanes, one),
        (files.write("one.speedscope.json", A[0]), trees, one),
        (files.write("both.speedscope.json", "--a", *A, "--b", *B), lanes, files.both()),
        (files.write("both.speedscope.json", "--a", *A, "--b", *B), trees, files.both()),
        (files.write("one.folded", A[0]), lambda name: True, one),
        (files.write("one.json", A[0], "--to", "chrome"), lanes, one),
        (files.write("live.json", LIVE, "--to", "chrome"), lambda name: "command buffers" in name, softmax),
        (files.write("live.speedscope.json", LIVE), lambda name: "command buffers" in name, softmax),
    ]
    script = ROOT / "tests/consumers/speedscope.js"
    command = ["node", script, modules, chromium, page.parent, *[path for path, _, _ in wanted]]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = []
    for (path, chosen, expected), shown in zip(wanted, json.loads(ran.stdout)):
        assert not shown["errors"], (path.name, shown["errors"])
        # The table on the screen has names; what speedscope holds, it exports.
        on_screen = {bare(name) for _, _, name in shown["table"]}
        assert on_screen & expected.keys() or path.name == "live.json", (path.name, on_screen)
        profiles = [profile for profile in shown["exported"]["profiles"] if chosen(profile["name"])]
        names = [bare(frame["name"]) for frame in shown["exported"]["shared"]["frames"]]
        sums = collections.Counter()
        for profile in profiles:
            scale = {"nanoseconds": 1, "none": 1, "microseconds": 1_000}[profile["unit"]]
            open_frames = []
            for event in profile["events"]:
                at, name = round(event["at"] * scale), names[event["frame"]]
                if event["type"] == "O":
                    open_frames.append((name, at))
                else:
                    _, begin = open_frames.pop()
                    # A name inside itself counts once.
                    if all(outer != name for outer, _ in open_frames):
                        sums[name] += at - begin
        assert {name: sums[name] for name in expected} == expected, (path.name, sums)
        told.append(f"{path.name} {len(profiles)} profiles")
    return ", ".join(told)


def bare(name):
    """A frame's name: of a Chrome trace, speedscope writes the arguments behind it."""
    return name.partition(" {")[0]


def main():
    with tempfile.TemporaryDirectory() as temporary:
        files = Files(pathlib.Path(temporary))
        for check in [check_perfetto, check_hatchet, check_folded, check_pprof, check_speedscope_schema, check_speedscope]:
            print(f"convert: {check.__name__.removeprefix('check_')}: {check(files)}", flush=True)


main()
