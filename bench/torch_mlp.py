"""Trains the network of mlp.amp with PyTorch and prints, as one line of JSON, the milliseconds and
the loss of every step and what PyTorch computes with.

    python3 torch_mlp.py DATA.npy WEIGHTS.safetensors --precision bf16 --batch 256 --rounds 12
"""
import argparse
import ctypes
import json
import time

import numpy
import torch
from torch import nn
from torch.nn import functional


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("data")
    p.add_argument("weights")
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--foreach", action="store_true", help="AdamW over all tensors at once")
    return p.parse_args()


def load_weights(path):
    """The tensors of a safetensors file that holds nothing but f32."""
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        data = f.read()
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        values = numpy.frombuffer(data[begin:end], "<f4").copy()
        tensors[name] = torch.from_numpy(values.reshape(t["shape"]))
    return tensors


class Mlp(nn.Module):
    def __init__(self, weights):
        super().__init__()
        for layer in ("fc1", "fc2", "fc3"):
            rows, columns = weights[layer + ".weight"].shape
            setattr(self, layer, nn.Linear(columns, rows))
        self.load_state_dict(weights)

    def forward(self, x):
        return self.fc3(functional.relu(self.fc2(functional.relu(self.fc1(x)))))


def blas_core():
    """The processor that OpenBLAS takes this one for."""
    try:
        name = ctypes.CDLL("libblas.so.3").openblas_get_corename
        name.restype = ctypes.c_char_p
        return name().decode()
    except (OSError, AttributeError):
        return "unknown"


def train(a, rows, net):
    x, y = torch.from_numpy(rows[:, :784].copy()), torch.from_numpy(rows[:, 784].astype("i8"))
    foreach = {"foreach": True} if a.foreach else {}
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, **foreach)
    times, losses = [], []
    for step in range(a.rounds * (len(rows) // a.batch)):
        begin = step * a.batch % (len(rows) // a.batch * a.batch)
        start = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.precision == "bf16"):
            out = net(x[begin : begin + a.batch])
        loss = functional.cross_entropy(out.float(), y[begin : begin + a.batch])
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        losses.append(float(loss))
        times.append((time.perf_counter() - start) * 1e3)
    return times, losses


def main():
    a = parse()
    torch.set_num_threads(a.threads)
    times, losses = train(a, numpy.load(a.data), Mlp(load_weights(a.weights)))
    print(json.dumps({
        "ms": times,
        "loss": losses,
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "core": blas_core(),
    }))


main()
