#!/usr/bin/python3
"""Holds emitted programs to PyTorch, which shares nothing with us.

    torch_reference.py AMPC SCRATCH_FOLDER

1. The MLP of examples/digits.amp at O0, from the same first weights and on the same rows in the same order: after 10
   steps of each optimizer no weight is further from PyTorch's f64 run than 4 times the largest difference that
   PyTorch's own f32 run has for that tensor, plus the rounding of the value to f32.
2. Every activation and loss: value and gradient, by the same rule.

Exit 77: PyTorch is not installed.
"""
import gzip
import json
import math
import struct
import subprocess
import sys
from pathlib import Path

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("skipped: PyTorch is not installed (apt-get install python3-torch)")
    sys.exit(77)

AMPC, FOLDER = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
DIGITS = Path("/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz")
STEPS, BATCH, HIDDEN = 10, 64, 64
U32 = 2.0**-24
failures = 0


def write_weights(path, tensors):
    """A safetensors file of f32 tensors."""
    header, data = {}, b""
    for name, t in tensors.items():
        raw = struct.pack(f"<{t.numel()}f", *t.reshape(-1).tolist())
        header[name] = {"dtype": "F32", "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_weights(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    tensors = {}
    for name, row in header.items():
        if name == "__metadata__":
            continue
        low, high = row["data_offsets"]
        assert row["dtype"] == "F32", row
        values = struct.unpack(f"<{(high - low) // 4}f", raw[8 + size + low:8 + size + high])
        tensors[name] = torch.tensor(values, dtype=torch.float64).reshape(row["shape"])
    return tensors


def run_program(name, text, weights):
    """Compiles and runs a program from these weights; gives the weights at the end and the rows of its log."""
    source, code, program = (FOLDER / f"{name}{end}" for end in (".amp", ".c", ""))
    first, last, log = (FOLDER / f"{name}-{what}" for what in ("first.safetensors", "last.safetensors", "log"))
    source.write_text(text)
    write_weights(first, weights)
    subprocess.run([AMPC, "-O0", source, "-o", code], check=True)
    subprocess.run(["gcc", "-O1", "-fopenmp", code, "-lm", "-o", program], check=True)
    subprocess.run([program, "--weights", first, "--export", last, "--log", log, "--log-format",
                    "jsonl", "--progress", "off"], check=True, cwd=FOLDER, stdout=subprocess.DEVNULL)
    return read_weights(last), [json.loads(line) for line in log.read_text().splitlines()]


def compare(what, ours, f64, f32):
    """|ours - f64| <= 4 max|f32 - f64| + the rounding of each value."""
    global failures
    spread = (f32.double() - f64).abs().max().item()
    allowed = 4 * spread + U32 * f64.abs()
    error = (ours - f64).abs()
    worst = (error - allowed).max().item()
    if not worst <= 0:
        failures += 1
        print(f"FAILED {what}: off by {error.max().item():.3g}, PyTorch's f32 run by {spread:.3g}")
    else:
        print(f"ok {what}: off by {error.max().item():.3g}, PyTorch's f32 run by {spread:.3g}")


# ---- 1. training ----

class Lamb(torch.optim.Optimizer):
    """LAMB as published: Adam's direction with weight decay, times |p| / |direction|."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=1e-2):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s["t"] += 1
                s["m"] = beta1 * s["m"] + (1 - beta1) * p.grad
                s["v"] = beta2 * s["v"] + (1 - beta2) * p.grad * p.grad
                m, v = s["m"] / (1 - beta1**s["t"]), s["v"] / (1 - beta2**s["t"])
                direction = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p
                p -= group["lr"] * p.norm() / direction.norm() * direction


OPTIMIZERS = {
    "sgd": ("sgd(net, lr = 0.05, momentum = 0.9)",
            lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
    "nesterov": ("sgd(net, lr = 0.05, momentum = 0.9, weight_decay = 0.01, nesterov = true)",
                 lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True)),
    "adam": ("adam(net, lr = 0.002)", lambda p: torch.optim.Adam(p, lr=0.002)),
    "adamw": ("adamw(net, lr = 0.002, weight_decay = 0.05)",
              lambda p: torch.optim.AdamW(p, lr=0.002, weight_decay=0.05)),
    "rmsprop": ("rmsprop(net, lr = 0.001, momentum = 0.5)",
                lambda p: torch.optim.RMSprop(p, lr=0.001, momentum=0.5)),
    "lamb": ("lamb(net, lr = 0.005)", lambda p: Lamb(p, lr=0.005)),
}

MLP = """ampc 1;

dataset digits = csv("rows.csv") {
    x: float[64] = columns(0, 64) / 16;
    y: i32       = column(64);
}

model Mlp(x: float[N, 64]) -> float[N, 10] {
    layer fc1 = linear(HIDDEN);
    layer fc2 = linear(HIDDEN);
    layer fc3 = linear(10);
    return x |> fc1 |> relu |> fc2 |> relu |> fc3;
}

instance net = Mlp();

train fit(x: float[N, 64], y: i32[N]) on digits {
    batch = BATCH;
    epochs = 1;
    shuffle = false;
    optimizer opt = OPTIMIZER;
    step {
        loss = cross_entropy(net(x), y);
        backward loss into opt;
        clip norm 1.0 of opt;
        update opt;
        report loss;
    }
}
"""


def rows_of_digits():
    with gzip.open(DIGITS, "rt") as file:
        lines = [next(file) for _ in range(STEPS * BATCH)]
    (FOLDER / "rows.csv").write_text("".join(lines))
    rows = torch.tensor([[float(v) for v in line.split(",")] for line in lines], dtype=torch.float64)
    return rows[:, :64] / 16, rows[:, 64].long()


def mlp_weights():
    generator = torch.Generator().manual_seed(1)
    sizes = [(HIDDEN, 64), (HIDDEN, HIDDEN), (10, HIDDEN)]
    weights = {}
    for i, (out, into) in enumerate(sizes, 1):
        for name, shape in ((f"fc{i}.weight", (out, into)), (f"fc{i}.bias", (out,))):
            uniform = torch.rand(shape, generator=generator, dtype=torch.float32)
            weights[name] = (2 * uniform - 1) / math.sqrt(into)
    return weights


def train_mlp(weights, x, y, optimizer, dtype):
    p = {name: w.to(dtype).clone().requires_grad_(True) for name, w in weights.items()}
    opt = optimizer(list(p.values()))
    losses = []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        h = x[rows].to(dtype)
        for i in (1, 2, 3):
            h = F.linear(h, p[f"fc{i}.weight"], p[f"fc{i}.bias"])
            h = F.relu(h) if i < 3 else h
        loss = F.cross_entropy(h, y[rows])
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        opt.step()
        losses.append(loss.detach())
    return {name: w.detach() for name, w in p.items()}, torch.stack(losses)


def check_training():
    x, y = rows_of_digits()
    weights = mlp_weights()
    for name, (ours, theirs) in OPTIMIZERS.items():
        text = MLP.replace("HIDDEN", str(HIDDEN)).replace("BATCH", str(BATCH)).replace("OPTIMIZER", ours)
        found, log = run_program(name, text, weights)
        f64, losses64 = train_mlp(weights, x, y, theirs, torch.float64)
        f32, losses32 = train_mlp(weights, x, y, theirs, torch.float32)
        for tensor in weights:
            compare(f"{name} {tensor}", found[tensor], f64[tensor], f32[tensor])
        ours = torch.tensor([row["loss"] for row in log], dtype=torch.float64)
        compare(f"{name} loss", ours, losses64, losses32)


# ---- 2. one op at a time ----

COUNT = 33
# name: .amp of w, PyTorch of w, where w lives
OPS = {
    "relu": ("relu(w)", F.relu, (-3, 3)),
    "leaky": ("leaky_relu(w, slope = 0.2)", lambda w: F.leaky_relu(w, 0.2), (-3, 3)),
    "elu": ("elu(w, alpha = 1.5)", lambda w: F.elu(w, 1.5), (-3, 3)),
    "silu": ("silu(w)", F.silu, (-6, 6)),
    "gelu": ("gelu(w)", F.gelu, (-4, 4)),
    "gelu_tanh": ('gelu(w, approx = "tanh")', lambda w: gelu_tanh(w), (-4, 4)),
    "sigmoid": ("sigmoid(w)", torch.sigmoid, (-6, 6)),
    "tanh": ("tanh(w)", torch.tanh, (-4, 4)),
    "softplus": ("softplus(w, beta = 2, threshold = 4)", lambda w: F.softplus(w, 2, 4), (-6, 6)),
    "exp": ("exp(w)", torch.exp, (-6, 3)),
    "expm1": ("expm1(w)", torch.expm1, (-3, 3)),
    "log": ("log(w)", torch.log, (0.1, 8)),
    "log1p": ("log1p(w)", torch.log1p, (-0.8, 8)),
    "sqrt": ("sqrt(w)", torch.sqrt, (0.1, 8)),
    "rsqrt": ("rsqrt(w)", torch.rsqrt, (0.1, 8)),
    "reciprocal": ("reciprocal(w)", torch.reciprocal, (0.2, 8)),
    "pow": ("pow(w, 1.75)", lambda w: w**1.75, (0.1, 4)),
    "sin": ("sin(w)", torch.sin, (-9, 9)),
    "cos": ("cos(w)", torch.cos, (-9, 9)),
    "erf": ("erf(w)", torch.erf, (-3, 3)),
    "abs": ("abs(w)", torch.abs, (-3, 3)),
    "square": ("square(w)", torch.square, (-3, 3)),
    "clamp": ("clamp(w, min = -1, max = 2)", lambda w: w.clamp(-1, 2), (-3, 3)),
    "softmax": ("softmax(w, axis = 0)", lambda w: F.softmax(w, 0), (-6, 6)),
    "log_softmax": ("log_softmax(w, axis = 0)", lambda w: F.log_softmax(w, 0), (-6, 6)),
    "variance": ("var(w)", torch.var, (-3, 3)),
    "largest": ("max(w)", torch.max, (-3, 3)),
    "mse": ("mse(w, c)", lambda w: F.mse_loss(w, c_like(w)), (-3, 3)),
    "l1": ("l1(w, c)", lambda w: F.l1_loss(w, c_like(w)), (-3, 3)),
    "smooth_l1": ("smooth_l1(w, c, beta = 0.5)",
                  lambda w: F.smooth_l1_loss(w, c_like(w), beta=0.5), (-3, 3)),
    "bce_logits": ("bce_with_logits(w, c)",
                   lambda w: F.binary_cross_entropy_with_logits(w, c_like(w)), (-6, 6)),
    "bce": ("bce(w, c)", lambda w: F.binary_cross_entropy(w, c_like(w)), (0.05, 0.95)),
    "cross_entropy": ("cross_entropy(reshape(w, [3, 11]), arange(3))",
                      lambda w: F.cross_entropy(w.reshape(3, 11), torch.arange(3)), (-4, 4)),
    "smoothed": ("cross_entropy(reshape(w, [3, 11]), arange(3), smoothing = 0.1)",
                 lambda w: F.cross_entropy(w.reshape(3, 11), torch.arange(3), label_smoothing=0.1),
                 (-4, 4)),
    "nll": ("nll(log_softmax(reshape(w, [3, 11]), axis = -1), arange(3))",
            lambda w: F.nll_loss(F.log_softmax(w.reshape(3, 11), -1), torch.arange(3)), (-4, 4)),
}


def gelu_tanh(w):
    """By its definition: F.gelu has no approximate= before PyTorch 1.12."""
    return 0.5 * w * (1 + torch.tanh(math.sqrt(2 / math.pi) * (w + 0.044715 * w**3)))


def c_like(w):
    """The constants beside w: (i + 1) / 64, exact in f32."""
    return (torch.arange(COUNT, dtype=w.dtype) + 1) / 64


def ops_text():
    text = ["ampc 1;", 'dataset one = csv("one.csv") { x: float[1] = columns(0, 1); }', ""]
    for name, (ours, _, _) in OPS.items():
        text += [f"model M_{name}(x: float[N, 1]) -> float {{",
                 f"    param {name}: float[{COUNT}] = zeros();", f"    w = {name} + 0.0;",
                 f"    c = (float(arange({COUNT})) + 1) / 64;",
                 f"    return sum({ours} * {'c' if name not in SCALARS else '1.0'}) + 0 * sum(x);", "}", ""]
    text += ["model All(x: float[N, 1]) -> (" + ", ".join("float" for _ in OPS) + ") {"]
    text += [f"    layer m_{name} = M_{name}();" for name in OPS]
    text += ["    return (" + ", ".join(f"m_{name}(x)" for name in OPS) + ");", "}",
             "instance net = All();", "train fit(x: float[N, 1]) on one {",
             "    batch = 1; epochs = 1; shuffle = false;", "    optimizer opt = sgd(net, lr = 1);",
             "    step {", "        (" + ", ".join(f"v_{name}" for name in OPS) + ") = net(x);",
             "        loss = " + "\n             + ".join(f"v_{name}" for name in OPS) + ";",
             "        backward loss into opt;", "        update opt;",
             "        report " + ", ".join(f"v_{name}" for name in OPS) + ";", "    }", "}"]
    return "\n".join(text) + "\n"


SCALARS = {"variance", "largest", "mse", "l1", "smooth_l1", "bce_logits", "bce", "cross_entropy", "smoothed", "nll"}


def op_in_torch(name, w, dtype):
    w = w.to(dtype).clone().requires_grad_(True)
    r = OPS[name][1](w)
    value = (r if name in SCALARS else r * c_like(w)).sum()
    value.backward()
    return value.detach(), w.grad


def check_ops():
    (FOLDER / "one.csv").write_text("0\n")
    weights = {}
    for k, (name, (_, _, (low, high))) in enumerate(OPS.items()):
        generator = torch.Generator().manual_seed(k)
        weights[f"m_{name}.{name}"] = low + (high - low) * torch.rand(COUNT, generator=generator)
    found, log = run_program("ops", ops_text(), weights)
    for name in OPS:
        w = weights[f"m_{name}.{name}"]
        value64, grad64 = op_in_torch(name, w, torch.float64)
        value32, grad32 = op_in_torch(name, w, torch.float32)
        value = torch.tensor(log[0][f"v_{name}"], dtype=torch.float64)
        # a sum of COUNT terms in another order: each order has its own roundings
        compare(f"{name} value", value, value64, value32)
        # the new weight is w - g, rounded once
        compare(f"{name} weight after a step of its gradient", found[f"m_{name}.{name}"], w.double() - grad64,
                w - grad32)


FOLDER.mkdir(parents=True, exist_ok=True)
torch.set_num_threads(1)
check_training()
check_ops()
print(f"{failures} failed")
sys.exit(failures > 0)
