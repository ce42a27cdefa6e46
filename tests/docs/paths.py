#!/usr/bin/python3
"""Every path that a page names exists: `folder/`, `folder/file.c`, `folder/{a,b}.c` and links.

    paths.py PAGE...
"""
import glob
import os
import re
import sys

missing, seen = [], 0
for page in sys.argv[1:]:
    root = os.path.dirname(os.path.abspath(page))
    text = open(page, encoding="utf-8").read()
    names = re.findall(r"`([A-Za-z0-9_.*{},/-]+)`", text)
    names = [n for n in names if "/" in n]
    names += [n for n in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in n]
    base = os.path.dirname(root) if os.path.basename(root) == "docs" else root
    for name in names:
        if name.startswith("build/"):
            continue
        seen += 1
        braces = re.match(r"(.*)\{(.*)\}(.*)", name)
        each = [name]
        if braces:
            each = [braces[1] + word + braces[3] for word in braces[2].split(",")]
        for path in each:
            if not glob.glob(os.path.join(base, path)) and not glob.glob(os.path.join(root, path)):
                missing.append(f"{page}: {path} does not exist")
print(f"{seen} paths")
sys.exit("\n".join(missing) if missing or not seen else 0)
