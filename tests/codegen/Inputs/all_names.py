"""A program whose weights, values, options and reports have the names that emitted programs keep for
themselves: all_names.py names.def
"""
import re
import sys

AMP_WORDS = """import const option struct def model infer instance extern policy dataset train eval param
buffer layer repeat precision if else assert report return true false training pi float f32 f16 bf16 half i8
u8 i16 i32 i64 bool int real string opt fit net x y""".split()
text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
names = list(dict.fromkeys(re.findall(r'\b[A-Z]+\("(\w+)"\)', text)))
names = [n for n in names if n not in AMP_WORDS and not n[0].isupper() and not n.startswith("_")]
assert len(names) > 100

print("ampc 1;")
for n in names:
    print(f"option {n}: real = 1 in 0 .. 2;")
print("model M(x: float[N, 3]) -> float[N] {")
for n in names:
    print(f"    param {n}: float[3] = zeros();")
for n in names:
    print(f"    x = x + {n};")
print("    return sum(x, axes = [1]);\n}\ninstance net = M();")
print("train fit(x: float[N, 3], y: float[N]) {\n    batch = 4; steps = 9;")
print("    optimizer opt = sgd(net, lr = lr);\n    step {\n        loss = mse(net(x), y);")
print("        backward loss into opt;\n        clip norm 1 of opt;\n        update opt;")
print("        report " + ", ".join(f"{n} = loss * {n}" for n in names) + ";\n    }\n}")
