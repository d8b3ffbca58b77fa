#!/usr/bin/env python3
"""Golden vectors of the statistics, from scipy (1.17 or newer): a second opinion on src/compare/inference.rs.

    python3 tests/oracle/inference.py            writes inference.json beside this file
    python3 tests/oracle/inference.py --check    exit 1 unless that file holds what this script makes

Needs scipy; `tests/inference_oracle.rs`, which reads the file, does not. What goes in are natural logarithms, as in the
crate. Nothing is random but by seed.
"""

import json
import math
import pathlib
import sys

import numpy
from scipy import stats

FILE = pathlib.Path(__file__).with_name("inference.json")
# What one scipy may differ from the next by, when the file is checked.
SAME = 1e-11


def quantile(p, df):
    return float(stats.t.ppf(p, df))


def trials_needed(most, gap, size):
    """Smallest n above `most` and up to 20 for which a gap is told four times in five; `size` gives df and error."""
    for n in range(most + 1, 21):
        df, error = size(n)
        if (quantile(0.95, df) + quantile(0.80, df)) * error <= gap:
            return n
    return None


def answer(result, df, error, sd, most, size):
    low, high = (float(bound) for bound in result.confidence_interval(0.90))
    reach = (quantile(0.95, df) + quantile(0.80, df)) * error
    # Gaps around what the trials resolve: far above, near, below.
    gaps = [reach * factor for factor in (2.0, 0.9, 0.6, 0.4, 0.1)]
    return {
        "low": low,
        "high": high,
        "df": float(df),
        "p": float(result.pvalue),
        "resolution": reach,
        "needs": [[gap, trials_needed(most, gap, size)] for gap in gaps],
    }


def welch(a, b):
    result = stats.ttest_ind(a, b, equal_var=False)
    var_a, var_b = (float(numpy.var(x, ddof=1)) for x in (a, b))
    error = math.sqrt(var_a / len(a) + var_b / len(b))
    sd = math.sqrt(((len(a) - 1) * var_a + (len(b) - 1) * var_b) / (len(a) + len(b) - 2))
    size = lambda n: (2 * n - 2, sd * math.sqrt(2 / n))
    return answer(result, result.df, error, sd, max(len(a), len(b)), size)


def paired(a, b):
    result = stats.ttest_rel(a, b)
    sd = float(numpy.std(numpy.subtract(a, b), ddof=1))
    size = lambda n: (n - 1, sd / math.sqrt(n))
    return answer(result, len(a) - 1, sd / math.sqrt(len(a)), sd, len(a), size)


def calibrated(a, b, sessions, sd):
    """By hand: the noise between sessions makes the interval; `a` and `b` may be one trial each."""
    df, error = sessions - 1, sd * math.sqrt(2)
    change = float(numpy.mean(a) - numpy.mean(b))
    half = quantile(0.95, df) * error
    return {
        "low": change - half,
        "high": change + half,
        "df": df,
        "p": float(2 * stats.t.cdf(-abs(change) / error, df)),
        "resolution": (quantile(0.95, df) + quantile(0.80, df)) * error,
    }


def trials():
    """Sides of 2 to 20 trials, equal and unequal in number and in spread, with and without a change."""
    rng = numpy.random.default_rng(20260101)
    sizes = [(n, n) for n in (2, 3, 4, 5, 6, 8, 10, 13, 20)]
    sizes += [(2, 3), (3, 2), (3, 5), (2, 20), (20, 2), (7, 4), (10, 3)]
    for n_a, n_b in sizes:
        # Tiny to huge: trials that differ by a millionth, and by a factor of thousands.
        for sd_a, sd_b, change in [
            (0.01, 0.01, 0.0),
            (0.01, 0.01, 0.03),
            (0.002, 0.05, -0.02),
            (1e-6, 1e-6, 1e-6),
            (1e-4, 3.0, 0.5),
            (4.0, 4.0, -1.0),
            (0.01, 0.01, 3.0),
        ]:
            yield rng.normal(change, sd_a, n_a).tolist(), rng.normal(0.0, sd_b, n_b).tolist()


def vectors():
    rng = numpy.random.default_rng(7)
    sides = list(trials())
    dfs = [1.0, 1.000001, 1.37, 2.0, 2.5, 3.0, 4.0, 5.77, 8.0, 11.9, 18.0, 30.0, 99.5, 1000.0, 9999.25, 10000.0]
    ps = [1e-9, 0.001, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.975, 0.999, 1 - 1e-9]
    discoveries = []
    for count in (1, 2, 3, 10, 49, 200):
        p = rng.uniform(0, 1, count) ** 3
        # Rows of no value have no p: they do not count. Ties and the ends of the range are there.
        p[:: max(2, count // 5)] = p[0]
        if count > 2:
            p[1], p[2] = 0.0, 1.0
        q = stats.false_discovery_control(p)
        mixed = [None if at % 7 == 6 else float(p[at]) for at in range(count)]
        kept = [value for value in mixed if value is not None]
        adjusted = iter(stats.false_discovery_control(kept).tolist())
        discoveries.append({"p": p.tolist(), "q": q.tolist()})
        discoveries.append({"p": mixed, "q": [None if value is None else next(adjusted) for value in mixed]})
    return {
        "made_by": "tests/oracle/inference.py with scipy " + scipy_version(),
        "quantiles": [[p, df, quantile(p, df)] for df in dfs for p in ps],
        "welch": [{"a": a, "b": b, **welch(a, b)} for a, b in sides],
        "paired": [{"a": a, "b": b, **paired(a, b)} for a, b in sides if len(a) == len(b)],
        "calibrated": [
            {"a": a, "b": b, "sessions": sessions, "sd": sd, **calibrated(a, b, sessions, sd)}
            for a, b in [([0.013], [0.0]), ([0.5], [0.01, 0.02, 0.0]), ([0.02, 0.021], [0.0, 0.001]), ([-2.0], [1.0])]
            for sessions in (2, 3, 5, 12)
            for sd in (1e-6, 0.01, 0.3, 2.0)
        ],
        "false_discovery": discoveries,
    }


def scipy_version():
    import scipy

    return scipy.__version__


def differences(found, expected, path=""):
    """Where two documents are not the same, numbers within SAME."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        for key in expected:
            # The version that made the file may be another one.
            if key != "made_by":
                yield from differences(found[key], expected[key], f"{path}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for at, (one, other) in enumerate(zip(found, expected)):
            yield from differences(one, other, f"{path}/{at}")
    elif isinstance(expected, float) and isinstance(found, (int, float)):
        if abs(found - expected) > SAME * max(abs(expected), 1e-300):
            yield f"{path}: {found} in the file, {expected} by scipy"
    elif found != expected:
        yield f"{path}: {found} in the file, {expected} by scipy"


def main():
    made = vectors()
    if sys.argv[1:] == ["--check"]:
        wrong = list(differences(json.loads(FILE.read_text(encoding="utf-8")), made))
        for line in wrong[:10]:
            print(line, file=sys.stderr)
        if wrong:
            sys.exit(f"error: {FILE.name} has {len(wrong)} numbers that scipy {scipy_version()} does not confirm")
        print(f"{FILE.name} is what scipy {scipy_version()} says")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        FILE.write_text(json.dumps(made, indent=None, separators=(",", ":")).replace('},{', '},\n{').replace('],[', '],\n[') + "\n")


main()
