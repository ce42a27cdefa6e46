#!/usr/bin/python3
"""The README tells the truth: its model compiles, and its C is part of the output.

    readme.py AMPC README [--update]        --update writes the C of today into the README

Which functions are shown stands in the README: `<!-- excerpt: PATTERN... -->`.
"""
import re
import subprocess
import sys

ampc, path = sys.argv[1:3]
text = open(path, encoding="utf-8").read()
model = re.search(r"```amp\n(.*?)```", text, re.S).group(1)
names = re.search(r"<!-- excerpt: (.*?) -->", text).group(1).split()
block = re.search(r"```c\n(.*?)```", text, re.S)

if len(model.splitlines()) > 12:
    sys.exit("the model has more than 12 lines")
program = subprocess.run(
    [ampc, "-O2", "-"], input=model, text=True, capture_output=True, check=False
)
if program.returncode:
    sys.exit(program.stderr)
pieces = []
for name in names:
    # The function, with the comments and the arguments that stand above it.
    found = re.search(
        r"(?:^(?://|/\*) [^\n]*\n)(?:typedef struct %s_args \{\n(?:[^\n]+\n)+\n)?"
        r"(?:^[^\n/ ][^\n]*\b%s\((?:[^{])*\{\n(?:(?!\}\n)[^\n]*\n)*\}\n)" % (name, name),
        program.stdout,
        re.M,
    )
    if not found:
        sys.exit(f"no function '{name}' in the output")
    pieces.append(found.group(0))
today = "\n".join(pieces).replace("<stdin>:", "readme.amp:")

if "--update" in sys.argv:
    with open(path, "w", encoding="utf-8") as out:
        out.write(text[: block.start(1)] + today + text[block.end(1) :])
elif today != block.group(1):
    sys.exit(f"the README's C is not what ampc writes; run: {' '.join(sys.argv)} --update")
