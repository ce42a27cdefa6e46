#!/usr/bin/python3
"""Every `amp` block of the language reference parses; one that begins with `ampc 1;` compiles.

    language.py AMPC PAGE
"""
import re
import subprocess
import sys

ampc, page = sys.argv[1:3]
blocks = re.findall(r"```amp\n(.*?)```", open(page, encoding="utf-8").read(), re.S)
failures = []
for block in blocks:
    whole = block.startswith("ampc 1;")
    run = subprocess.run(
        [ampc, "-fsyntax-only" if whole else "--emit=ast", "-"],
        input=block,
        text=True,
        capture_output=True,
        check=False,
    )
    if run.returncode:
        failures.append(block + run.stderr)
print(f"{len(blocks)} blocks")
sys.exit("\n".join(failures) if failures or not blocks else 0)
