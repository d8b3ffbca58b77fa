"""A fleet of 200 trials, and the queries of docs/fleet.md over it, as they stand there.

    fleet.py BINARY MAKE_FLEET [--all]      the binary, the example that makes the recordings, and Spark as well

Run by tests/consumers/run. The recordings have three faults in them (tests/support/fleet.rs): each query has to find its
own, and nothing else.
"""

import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import duckdb
import polars
import pyarrow.dataset

BINARY, MAKE_FLEET = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
ROOT = pathlib.Path(__file__).resolve().parents[2]
TRIALS, TOKENS, PHASES = 200, 8, 6

# What is found, without its numbers.
PLANTED = {
    "regressions": [("decode.ffn.down", "d8f0421")],
    "machines": [("studio-3", "decode.attn.core")],
    "noise": [("mini-2",)],
}


def blocks():
    """Code blocks of docs/fleet.md: (what is behind the fence, text)."""
    page = (ROOT / "docs/fleet.md").read_text(encoding="utf-8")
    return re.findall(r"^```([^\n]*)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def statements(language):
    """Statements that make the views, for `duckdb` or `spark`."""
    wanted = (f"sql {language}", "sql both")
    return [part for kind, text in blocks() if kind in wanted for part in text.split(";") if part.strip()]


def queries():
    """Name, query and the printed answer."""
    found = {}
    for (kind, text), (next_kind, answer) in zip(blocks(), blocks()[1:]):
        if kind.startswith("sql query "):
            assert next_kind == "text", kind
            found[kind.removeprefix("sql query ")] = (text.strip().rstrip(";"), answer)
    assert set(found) == set(PLANTED)
    return found


def table(names, rows):
    """Rows as docs/fleet.md prints them."""
    lines = [names] + [[str(value) for value in row] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    return "".join("  ".join(value.ljust(width) for value, width in zip(line, widths)).rstrip() + "\n" for line in lines)


def convert(folder):
    """200 trials through the real binary: one conversion for each commit on each machine, as nights would do it."""
    recordings = folder / "recordings"
    made = subprocess.run([MAKE_FLEET, recordings], check=True, capture_output=True, text=True)
    nights = [line.split("\t") for line in made.stdout.splitlines()]
    for machine, commit, committed, *trials in nights:
        said = ["--set", f"machine={machine}", "--set", f"commit={commit}", "--set", f"committed={committed}"]
        command = [BINARY, "convert", *trials, "--tokens", str(TOKENS), "--to", "parquet", "-o", folder / "fleet", *said]
        ran = subprocess.run(command, cwd=recordings, capture_output=True, text=True)
        assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    return recordings, nights


def check_answers(tool, ask):
    """`ask` runs a query and gives names of columns and rows."""
    for name, (query, printed) in queries().items():
        names, rows = ask(query)
        width = len(PLANTED[name][0])
        assert [tuple(row[:width]) for row in rows] == PLANTED[name], (tool, name, rows)
        assert table(names, rows) == printed, f"{tool}, {name}: docs/fleet.md should print\n{table(names, rows)}"
    return "finds the commit, the machine and the noise, and nothing else"


def check_duckdb():
    database = duckdb.connect()
    for statement in statements("duckdb"):
        database.execute(statement)
    one = lambda query: database.execute(query).fetchone()
    assert one("SELECT count(*), count(DISTINCT trial) FROM trials") == (TRIALS, TRIALS)
    # What the trials say of themselves is what their submissions are.
    odd = """
        SELECT count(*) FROM trials AS t WHERE (submissions, total_ns) IS DISTINCT FROM
            (SELECT (count(*), sum(duration_ns)::BIGINT) FROM submissions AS s WHERE s.side = t.side AND s.trial = t.trial)
    """
    assert one(odd) == (0,), one(odd)
    assert one("SELECT count(*) FROM submissions") == (TRIALS * TOKENS * PHASES,)
    types = {name: kind for name, kind, *_ in database.execute("DESCRIBE submissions").fetchall()}
    assert {types[name] for name in ("side", "trial", "phase", "encoder_id")} == {"VARCHAR"}, types
    assert {types[name] for name in ("start_ns", "duration_ns", "pid")} == {"BIGINT"} and types["coalesced"] == "BOOLEAN"

    def ask(query):
        done = database.execute(query)
        return [column[0] for column in done.description], done.fetchall()

    return check_answers("duckdb", ask)


def check_python():
    """The examples in Python, and that three readers see the same."""
    total = duckdb.sql("SELECT sum(duration_ns) FROM 'fleet/submissions/*/*/*.parquet'").fetchall()[0][0]
    polars_example, pyarrow_example = (text for kind, text in blocks() if kind == "python")
    names = {}
    exec(polars_example, names)
    slowest = names["slowest"]
    assert slowest.shape == (5 * PHASES, 3)
    assert abs(slowest["duration_ns"].sum() * 1e6 - total) < 1
    exec(pyarrow_example, names)
    compute = names["compute"]
    assert compute.num_rows == TRIALS * TOKENS * PHASES
    assert sum(compute["duration_ns"].to_pylist()) == total
    schema = {field.name: str(field.type) for field in names["submissions"].schema}
    assert schema["start_ns"] == "int64" and schema["submission_id"] == "string" and schema["side"] == "string", schema
    assert set(polars.read_parquet("fleet/submissions/**/*.parquet", hive_partitioning=True).columns) == set(schema)
    return f"polars {polars.__version__} and pyarrow {pyarrow.__version__} read {compute.num_rows} submissions, DuckDB the same"


def check_nights_with_other_names(folder, recordings, nights):
    """A night that says other things of its trials goes together with the others; a repeated one takes its own place."""
    machine, commit, committed, *trials = nights[0]
    said = ["--set", f"commit={commit}", "--set", "room=b12"]
    subprocess.run(
        [BINARY, "convert", *trials[:1], "--tokens", str(TOKENS), "--to", "parquet", "-o", folder / "other", *said],
        cwd=recordings, check=True, capture_output=True,
    )
    subprocess.run(
        [BINARY, "convert", *trials[1:2], "--tokens", str(TOKENS), "--to", "parquet", "-o", folder / "other", "--set", f"machine={machine}"],
        cwd=recordings, check=True, capture_output=True,
    )
    rows = duckdb.sql(
        "SELECT room, machine FROM read_parquet('other/trials/*/*/*.parquet', union_by_name = true) ORDER BY ALL"
    ).fetchall()
    assert rows == [("b12", None), (None, machine)], rows
    example = next(text for kind, text in blocks() if kind == "python").splitlines()
    scan = next(line for line in example if line.startswith("trials = ")).replace("fleet/", "other/")
    names = {"polars": polars}
    exec(scan.replace(")", ', extra_columns="ignore")'), names)
    assert names["trials"].collect().shape[0] == 2
    return "two nights with other names are read together"


def check_csv(folder, recordings, nights):
    """The CSV of a night holds what its Parquet files hold."""
    machine, commit, committed, *trials = nights[0]
    file = folder / "night.csv"
    said = ["--set", f"machine={machine}"]
    subprocess.run(
        [BINARY, "convert", *trials, "--tokens", str(TOKENS), "--to", "csv", "-o", file, *said],
        cwd=recordings, check=True, capture_output=True,
    )
    with open(file, encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text, strict=True))
    columns = "side, trial, phase, encoder_label, start_ns, duration_ns, submission_id"
    stored = duckdb.sql(
        f"SELECT {columns} FROM read_parquet('fleet/submissions/*/*/*.parquet', hive_partitioning = true)"
        f" SEMI JOIN (FROM read_parquet('fleet/trials/*/*/*.parquet', hive_partitioning = true)"
        f" WHERE machine = '{machine}' AND commit = '{commit}') USING (side, trial) ORDER BY trial, start_ns"
    ).fetchall()
    mine = [tuple(row[name] for name in columns.split(", ")) for row in rows]
    mine = sorted(mine, key=lambda row: (row[1], int(row[4])))
    assert mine == [tuple(map(str, row)) for row in stored]
    assert {row["machine"] for row in rows} == {machine}
    ((sniffed,),) = duckdb.sql(f"SELECT count(*) FROM read_csv('{file}')").fetchall()
    assert sniffed == len(rows) == 5 * TOKENS * PHASES
    return f"{len(rows)} rows, as in Parquet"


def check_spark():
    import pyspark.sql

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        pyspark.sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for statement in statements("spark"):
        spark.sql(statement)
    kinds = {field.name: field.dataType.simpleString() for field in spark.table("submissions").schema}
    assert kinds["side"] == kinds["trial"] == "string" and kinds["duration_ns"] == "bigint", kinds

    def ask(query):
        rows = spark.sql(query)
        return rows.columns, [tuple(row) for row in rows.collect()]

    found = check_answers("spark", ask)
    spark.stop()
    return f"{pyspark.__version__}: {found}"


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        recordings, nights = convert(folder)
        os.chdir(folder)
        print(f"fleet: duckdb: {check_duckdb()}")
        print(f"fleet: python: {check_python()}")
        print(f"fleet: nights: {check_nights_with_other_names(folder, recordings, nights)}")
        print(f"fleet: csv: {check_csv(folder, recordings, nights)}")
        if "--all" in sys.argv:
            print(f"fleet: spark: {check_spark()}")


main()
