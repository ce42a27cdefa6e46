"""Holds an emitted program to a golden file: all that ampc itself prints, without banner and pasted runtime.

    own_text.py EMITTED GOLDEN              prints the difference, 1 if there is one
    own_text.py EMITTED GOLDEN --update     makes it the golden; then read what changed
"""
import difflib
import sys

START = "/* ---- State ---- */\n"

text = open(sys.argv[1]).read()
own = text[text.index(START) :]
if "--update" in sys.argv:
    open(sys.argv[2], "w").write(own)
golden = open(sys.argv[2]).read()
sys.stdout.writelines(difflib.unified_diff(golden.splitlines(True), own.splitlines(True), sys.argv[2], sys.argv[1]))
sys.exit(own != golden)
