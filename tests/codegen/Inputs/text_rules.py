"""Rules that every emitted file keeps: text_rules.py FILE [FUNCTION LINES]. No line over 100 columns, no tab, no
space at a line's end, the contents list tells true lines, no function or type of the runtime that nothing names,
and FUNCTION has at most LINES lines.
"""
import re
import sys

text = open(sys.argv[1]).read()
lines = text.split("\n")
faults = []
for number, line in enumerate(lines, 1):
    if len(line) > 100:
        faults.append(f"line {number} has {len(line)} columns")
    if "\t" in line or line != line.rstrip():
        faults.append(f"line {number} has a tab, or ends in a space")

banner = text[: text.index("*/")]
sections = re.findall(r"^ \* +(\d+)  (.+)$", banner, re.M)
if len(sections) < 5:
    faults.append("there is no list of contents")
for number, title in sections:
    if lines[int(number) - 1] != f"/* ---- {title} ---- */":
        faults.append(f"the contents list puts '{title}' on line {number}, where '{lines[int(number) - 1]}' is")

code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
for name in re.findall(r"^(?:static|RT_FN|RT_INLINE|RT_LEAF)\b[^;={]*?\b(\w+)\(", code, re.M):
    if len(re.findall(rf"\b{name}\b", code)) < 2:
        faults.append(f"nothing names '{name}'")

if len(sys.argv) > 2:
    body = re.search(rf"^static void {sys.argv[2]}\(.*?^}}", text, re.M | re.S).group(0)
    if body.count("\n") + 1 > int(sys.argv[3]):
        faults.append(f"{sys.argv[2]} has {body.count(chr(10)) + 1} lines")

print("\n".join(faults))
sys.exit(bool(faults))
