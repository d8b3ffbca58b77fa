#!/usr/bin/env python3
"""Runs the script that the tool replaces on exported files instead of a bundle, and prints its summary as JSON.

    script_on_files.py SCRIPT DIR [--tokens N] [--process PREFIX]

SCRIPT is loaded where it stands; only its way to a table is replaced: `DIR/<schema>.xml` (or `.xml.gz`) in place of a
call of `xctrace`. What it prints is what the script says, faults included.
"""

import argparse
import gzip
import importlib.util
import json
import os
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script")
    parser.add_argument("folder")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--process", default="", metavar="PREFIX")
    options = parser.parse_args()

    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("script", options.script)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def export_table(folder, schema):
        path = os.path.join(folder, f"{schema}.xml")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
        with gzip.open(path + ".gz", "rt", encoding="utf-8") as file:
            return file.read()

    script.export_table = export_table
    summary = script.summarize_trace(options.folder, options.tokens, target_process_prefix=options.process)
    summary["path"] = os.path.basename(os.path.normpath(options.folder))
    json.dump(summary, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
