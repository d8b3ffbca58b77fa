#!/usr/bin/env python3
"""What the numbers of one trial should be, worked out a second time and independently of the tool.

Written from the product description alone, with the standard library: slow, plain, and without any of the tool's
code, so that both can only agree by being right. Reads a folder or files of exported tables (plain or gzip), resolves
ids by text, and prints JSON.

    oracle.py INPUT... [--process NAME|PID|GLOB|all] [--timing auto|intervals|points]
              [--from NS] [--to NS] [--skip-first NS]
"""

import argparse
import fnmatch
import gzip
import json
import os
import re
import statistics
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict

INTERVALS = "metal-gpu-intervals"
POINTS = "metal-gpu-execution-points"
MAP = "metal-gpu-submission-to-command-buffer-id"
ENCODERS = "metal-application-encoders-list"
BUCKETS = [("xs_<2us", 0), ("sm_2_8us", 2_000), ("md_8_32us", 8_000), ("lg_32_80us", 32_000), ("xl_>=80us", 80_000)]
REASONS = ["unpaired_start", "unpaired_end", "other_function", "invalid", "no_mapping", "no_process", "other_process",
           "outside_window", "nested"]
NO_VALUE, NO_TIME = 2**64 - 1, 2**50 - 1
CHANNELS = {0x123457: "Vertex", 0x123458: "Fragment", 0x123459: "Compute"}
DEFAULT_BUFFER = re.compile(r"Command Buffer \d+$")
ENCODER_NAMES = r"(?:Compute|Blit|Render|Acceleration Structure|Resource State) Command \d+"
DEFAULT_ENCODER = re.compile(ENCODER_NAMES + "$")
DECORATION = re.compile(r"\s*\(\s*[^()]*(?:\([^()]*\)[^()]*)* \(\d+\)\s*\).*$", re.S)


class Unfit(Exception):
    """The input cannot give an answer."""


# ------------------------------------------------------------------------------------------------ reading

def content(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class Tables:
    """All rows of all schemas of the input, as dictionaries by mnemonic, and the target of the table of contents."""

    def __init__(self, inputs):
        self.rows = defaultdict(list)
        self.present = set()
        self.target = None
        self.recorded_ns = None
        for name in inputs:
            if os.path.isdir(name):
                for entry in sorted(os.listdir(name)):
                    if entry.endswith((".xml", ".xml.gz")) and not entry.startswith("."):
                        self.read(os.path.join(name, entry))
                    elif entry.endswith(".zst"):
                        print(f"note: {entry} is not read: no zstd in the standard library", file=sys.stderr)
            else:
                self.read(name)

    def read(self, path):
        root = ET.fromstring(content(path))
        if root.tag == "trace-toc":
            return self.read_toc(root)
        ids, columns, kinds, schema = {}, None, None, None
        for node in root.iter("node"):
            declared = node.find("schema")
            if declared is not None:
                schema = declared.get("name").strip()
                columns = [col.findtext("mnemonic").strip() for col in declared.iter("col")]
                kinds = [col.findtext("engineering-type").strip() for col in declared.iter("col")]
                self.present.add(schema)
            for row in node.iter("row"):
                if columns is None:
                    raise Unfit(f"{path}: rows without a schema")
                # Document order: a later definition of an id replaces the earlier one.
                cells = []
                for cell in row:
                    self.remember(cell, ids)
                    cells.append(self.resolve(cell, ids))
                if len(cells) != len(columns):
                    raise Unfit(f"{path}: a row of {schema} has {len(cells)} cells for {len(columns)} columns")
                for column, kind, cell in zip(columns, kinds, cells):
                    if cell.tag not in (kind, "sentinel") and kind != "any":
                        raise Unfit(f"{path}: {column} expects <{kind}>, found <{cell.tag}>")
                self.rows[schema].append(dict(zip(columns, cells)))

    def remember(self, element, ids):
        for inner in element.iter():
            if "id" in inner.attrib:
                ids[inner.get("id")] = inner
        # A copy with its refs filled in now, since an id can mean something else later.
        for inner in element.iter():
            for at, child in enumerate(list(inner)):
                if "ref" in child.attrib:
                    inner[at] = self.resolve(child, ids)

    @staticmethod
    def resolve(element, ids):
        if "ref" not in element.attrib:
            return element
        if element.get("ref") not in ids:
            raise Unfit(f"dangling ref {element.get('ref')}")
        return ids[element.get("ref")]

    def read_toc(self, root):
        runs = root.findall("run")
        if len(runs) != 1:
            raise Unfit("several runs: " + ", ".join(run.get("number") for run in runs))
        process = runs[0].find("info/target/process")
        if process is not None and process.get("pid"):
            self.target = (process.get("name"), int(process.get("pid")))
        duration = runs[0].findtext("info/summary/duration")
        if duration and float(duration) > 0:
            seconds, _, fraction = duration.partition(".")
            self.recorded_ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])


def text(cell):
    """The cell's own text; a composite's is its children's."""
    if cell is None or cell.tag == "sentinel":
        return None
    if len(cell):
        return "".join(inner.text or "" for inner in cell.iter() if not len(inner)).strip()
    return (cell.text or "").strip()


def number(cell):
    value = text(cell)
    if not value:
        return None
    value = int(value)
    return None if value == NO_VALUE else value


def time(cell):
    value = number(cell)
    return None if value == NO_TIME else value


def process_of(cell):
    if cell is None or cell.tag == "sentinel":
        return None
    match = re.match(r"(.*) \((\d+)\)$", cell.get("fmt") or "", re.S)
    pid = cell.find("pid")
    pid = number(pid) if pid is not None else (int(match.group(2)) if match else None)
    name = match.group(1) if match else cell.get("fmt")
    return None if pid is None else (name, pid)


# ------------------------------------------------------------------------------------------------ labels

def split_label(label):
    """The command buffer's label and the encoder's, from one `buffer:encoder`."""
    match = re.match(r"(Command Buffer \d+):(?!:)(.*)$", label, re.S)
    if not match:
        match = re.match(r"(.*(?<!:)):(" + ENCODER_NAMES + ")$", label, re.S)
    if not match:
        match = re.match(r"(.*(?<!:)):(?!:)(.*)$", label, re.S)
    return (match.group(1).strip(), match.group(2).strip()) if match else ("", label.strip())


def event_label(cell):
    if cell is None or cell.tag == "sentinel":
        return None
    first = cell.find("string")
    label = (first.text or "").strip() if first is not None else DECORATION.sub("", text(cell)).strip()
    return split_label(label)


def normal(label):
    label = re.sub(r"^\[\d+\] ", "", label or "")
    return ".".join(part for part in label.split(".") if not re.fullmatch("[0-9]+", part))


def phase(labels):
    if labels is None:
        return "(unknown)"
    for label, default in zip(labels, (DEFAULT_BUFFER, DEFAULT_ENCODER)):
        key = normal(label)
        if key and not default.match(key):
            return key
    return "(unlabelled)"


def family(labels):
    label = labels[1] if labels else ""
    if not label:
        return "(unknown)"
    if " & " in label or re.match(r"Coelasced \d+ Encoders", label):
        return label
    for start, name in (("Compute Command", "compute"), ("Blit Command", "blit"), ("Render Command", "render"),
                        ("Acceleration", "accel")):
        if label.startswith(start):
            return name
    return label.split()[0].lower()


# ------------------------------------------------------------------------------------------------ submissions

class Trial:
    def __init__(self, tables, process, timing, window):
        self.tables, self.left_out = tables, {reason: [0, 0] for reason in REASONS}
        self.ambiguous = 0
        self.labels = self.encoder_labels()
        self.timing, self.process = None, None
        candidates = {"intervals": [self.intervals], "points": [self.points], "auto": [self.intervals, self.points]}
        problem = Unfit("no timing table; there are: " + ", ".join(sorted(tables.present)))
        for source in candidates[timing]:
            name = INTERVALS if source == self.intervals else POINTS
            if name not in tables.present:
                continue
            if name == POINTS and MAP not in tables.present and process != "all":
                problem = Unfit(f"{POINTS} without {MAP}")
                continue
            self.left_out = {reason: [0, 0] for reason in REASONS}
            found = source()
            try:
                chosen = self.choose(found, process)
            except Unfit as error:
                problem = error
                continue
            if chosen != "all" and not any(one["process"] == chosen for one in found):
                listed = sorted({str(one["process"]) for one in found})
                problem = Unfit(f"0 of {len(found)} submissions are of {chosen}; there are {', '.join(listed)}")
                continue
            self.timing, self.process = ("intervals" if name == INTERVALS else "points"), chosen
            self.counted = self.count(found, window)
            return
        raise problem

    def drop(self, reason, rows, ns):
        self.left_out[reason][0] += rows
        self.left_out[reason][1] += ns or 0

    def encoder_labels(self):
        if ENCODERS not in self.tables.present:
            return None
        labels, doubtful = {}, Counter()
        for row in self.tables.rows[ENCODERS]:
            encoder = number(row.get("encoder-id"))
            own = (text(row.get("cmdbuffer-label")) or "", text(row.get("encoder-label")) or "")
            if labels.setdefault(encoder, own) != own:
                doubtful[encoder] += 1
        self.ambiguous = len(doubtful)
        return labels

    def valid(self, start, end):
        recorded = self.tables.recorded_ns
        return start is not None and end is not None and end >= start and (recorded is None or end <= recorded)

    def intervals(self):
        found = []
        for row in self.tables.rows[INTERVALS]:
            start, duration = time(row["start"]), time(row["duration"])
            end = None if start is None or duration is None else start + duration
            if duration is not None and duration < 0 or not self.valid(start, end):
                self.drop("invalid", 1, max(duration or 0, 0))
                continue
            encoder = number(row.get("encoder-id"))
            fallback = event_label(row.get("event-label"))
            labels = fallback if self.labels is None else self.labels.get(encoder)
            found.append({
                "start": start, "end": end, "rows": 1, "channel": text(row.get("channel-name")),
                "depth": number(row.get("event-depth")) or 0, "process": process_of(row.get("process")),
                "encoder": encoder, "buffer": number(row.get("cmdbuffer-id")), "labels": labels,
                "submission": number(row.get("gpu-submission-id")),
            })
        return found

    def points(self):
        by_submission = {}
        for row in self.tables.rows[MAP]:
            submission = number(row["gpu-submission-id"])
            by_submission[submission] = (number(row["cmdbuffer-id"]), number(row["encoder-id"]),
                                         process_of(row["process"]))
        found = []
        for channel, submission, start, end in self.pairs():
            if not self.valid(start, end):
                self.drop("invalid", 2, max(end - start, 0))
                continue
            mapped = by_submission.get(submission)
            buffer, encoder, process = mapped or (None, None, None)
            labels = None if self.labels is None else self.labels.get(encoder)
            found.append({
                "start": start, "end": end, "rows": 2, "channel": CHANNELS.get(channel, hex(channel)), "depth": 0,
                "process": process, "mapped": mapped is not None, "encoder": encoder, "buffer": buffer,
                "labels": labels, "submission": submission,
            })
        return found

    def pairs(self):
        rows = []
        for row in self.tables.rows[POINTS]:
            at, function = time(row["timestamp"]), number(row["function"])
            key = (number(row["channel-id"]), number(row["gpu-submission-id"]))
            if at is None or None in key:
                self.drop("invalid", 1, 0)
            elif function not in (1, 2):
                self.drop("other_function", 1, 0)
            else:
                rows.append((at, function, key))
        opened, done, first = {}, [], 0
        while first < len(rows):
            last = first
            while last < len(rows) and rows[last][0] == rows[first][0]:
                last += 1
            group, first = rows[first:last], last
            # At one time: ends of what is open, then starts, then ends of what has just started.
            late = []
            for at, function, key in group:
                if function == 2 and key in opened:
                    done.append((*key, opened.pop(key), at))
                elif function == 2:
                    late.append(key)
            for at, function, key in group:
                if function == 1:
                    if key in opened:
                        self.drop("unpaired_start", 1, 0)
                    opened[key] = at
            for key in late:
                if key in opened:
                    done.append((*key, opened.pop(key), group[0][0]))
                else:
                    self.drop("unpaired_end", 1, 0)
        self.drop("unpaired_start", len(opened), 0)
        return done

    def choose(self, found, wanted):
        if wanted == "all":
            return "all"
        there = Counter()
        for one in found:
            if one["process"]:
                there[one["process"]] += one["end"] - one["start"]
        listed = ", ".join(f"{name} ({pid}) {ns} ns" for (name, pid), ns in sorted(there.items(), key=str)) or "none"
        if wanted is None:
            if self.tables.target:
                return self.tables.target
            others = [process for process in there if process[0] != "WindowServer"]
            if len(others) == 1:
                return others[0]
            raise Unfit("which process? " + listed)
        if wanted.isdigit():
            matching = [process for process in there if process[1] == int(wanted)]
        elif any(sign in wanted for sign in "*?["):
            matching = [process for process in there if fnmatch.fnmatchcase(process[0] or "", wanted)]
        else:
            matching = [process for process in there if process[0] == wanted]
        if len(matching) != 1:
            raise Unfit(f"{len(matching)} processes match {wanted}; there are {listed}")
        return matching[0]

    def count(self, found, window):
        own = []
        for one in found:
            ns = one["end"] - one["start"]
            if self.process == "all":
                own.append(one)
            elif not one.get("mapped", True):
                self.drop("no_mapping", one["rows"], ns)
            elif one["process"] is None:
                self.drop("no_process", one["rows"], ns)
            elif one["process"] != self.process:
                self.drop("other_process", one["rows"], ns)
            else:
                own.append(one)
        flat = []
        shallow = defaultdict(list)
        for one in own:
            shallow[(one["process"], one["channel"], one["encoder"])].append(one)
        for one in own:
            around = shallow[(one["process"], one["channel"], one["encoder"])]
            if one["depth"] > 0 and one["encoder"] is not None and any(
                    other["depth"] < one["depth"] and other["start"] <= one["start"] and one["end"] <= other["end"]
                    for other in around):
                self.drop("nested", one["rows"], one["end"] - one["start"])
            else:
                flat.append(one)
        low, high, skip = window
        if skip is not None and flat:
            low = max(low or 0, min(one["start"] for one in flat) + skip)
        self.window = (low, high)
        counted = []
        for one in flat:
            if (low is not None and one["start"] < low) or (high is not None and one["start"] >= high):
                self.drop("outside_window", one["rows"], one["end"] - one["start"])
            else:
                counted.append(one)
        if not counted:
            raise Unfit("nothing is left to count")
        return counted

    # -------------------------------------------------------------------------------------------- numbers

    def report(self):
        counted = self.counted
        first, last = min(one["start"] for one in counted), max(one["end"] for one in counted)
        low = first if self.window[0] is None else self.window[0]
        high = last if self.window[1] is None else self.window[1]
        busy = union([(max(one["start"], low), min(one["end"], high)) for one in counted])
        rows = len(self.tables.rows[INTERVALS if self.timing == "intervals" else POINTS])
        assert rows == sum(one["rows"] for one in counted) + sum(count for count, _ in self.left_out.values())
        return {
            "process": "all" if self.process == "all" else {"name": self.process[0], "pid": self.process[1]},
            "timing": self.timing,
            "rows_read": rows,
            "submissions": len(counted),
            "total_ns": sum(one["end"] - one["start"] for one in counted),
            "busy_ns": busy,
            "window_ns": high - low,
            "idle_ns": high - low - busy,
            "first_start_ns": first,
            "last_end_ns": last,
            "buckets": groups(counted, lambda one: bucket(one["end"] - one["start"]), [name for name, _ in BUCKETS]),
            "phases": groups(counted, lambda one: phase(one["labels"])),
            "encoders": groups(counted, lambda one: family(one["labels"])),
            "channels": groups(counted, lambda one: one["channel"] or "(unknown)"),
            "ambiguous_encoders": self.ambiguous,
            "left_out": {reason: {"rows": count, "total_ns": ns} for reason, (count, ns) in self.left_out.items()},
        }


def union(spans):
    total, reach = 0, None
    for start, end in sorted(spans):
        if reach is None or start > reach:
            total, reach = total + max(end - start, 0), end
        elif end > reach:
            total, reach = total + end - reach, end
    return total


def bucket(ns):
    return [name for name, edge in BUCKETS if ns >= edge][-1]


def groups(counted, key, always=()):
    members = {name: [] for name in always}
    for one in counted:
        members.setdefault(key(one), []).append(one)
    result = {}
    for name in list(always) or sorted(members):
        own = members[name]
        if not own:
            continue
        durations = [one["end"] - one["start"] for one in own]
        result[name] = {
            "count": len(own),
            "total_ns": sum(durations),
            "busy_ns": union([(one["start"], one["end"]) for one in own]),
            "p50_ns": statistics.median(durations),
            "encoders": len({one["encoder"] for one in own if one["encoder"] is not None}),
            "command_buffers": len({one["buffer"] for one in own if one["buffer"] is not None}),
        }
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    parser.add_argument("--process")
    parser.add_argument("--timing", choices=["auto", "intervals", "points"], default="auto")
    parser.add_argument("--from", type=int, dest="low", metavar="NS")
    parser.add_argument("--to", type=int, dest="high", metavar="NS")
    parser.add_argument("--skip-first", type=int, metavar="NS")
    options = parser.parse_args()
    try:
        window = (options.low, options.high, options.skip_first)
        trial = Trial(Tables(options.inputs), options.process, options.timing, window)
    except (Unfit, ET.ParseError, OSError, EOFError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    json.dump(trial.report(), sys.stdout, indent=1, ensure_ascii=False)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
