"""What the tests of whole programs share: emit a model, build it, run it, read what it wrote.

    program = build(MODEL, "-O2", "--half=f16", "--rounding=strict")
    run = program.run("--lr", "0.1", log=True)
    run.rows[-1]["loss"], run.checkpoint()["param/net/w"]

Each test works in a folder of its own below the build folder, which is emptied first.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
AMPC = os.environ.get("AMPC", "build/ampc")
INTERPRET = os.environ.get("INTERPRET", "build/tests/interpret")
WORK = os.environ.get("WORK", "build/tests/run")
TIMEOUT = 240  # seconds; a program that hangs is a failure

BASE_FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fopenmp"]


def sh(command, cwd=None, env=None, stdin=None):
    """Runs a command; (status, standard output, standard error)."""
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", **(env or {}))  # threads wait without spinning
    done = subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True, timeout=TIMEOUT)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def must(command, cwd=None):
    status, out, err = sh(command, cwd)
    if status:
        raise AssertionError("%s\nexits %d\n%s%s" % (" ".join(command), status, out, err))
    return out


# ---- files ----

DTYPES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "BF16": "<u2", "I32": "<i4", "I64": "<i8", "U8": "u1"}


def read_safetensors(path):
    """Tensors by name, half types widened to f32; the metadata under the name None."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    out = {None: header.pop("__metadata__", {})}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = numpy.frombuffer(data[8 + size + begin : 8 + size + end], DTYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":
            raw = (raw.astype(numpy.uint32) << 16).view(numpy.float32)
        elif entry["dtype"] == "F16":
            raw = raw.astype(numpy.float32)
        out[name] = raw.reshape(entry["shape"])
    return out


def write_safetensors(path, tensors):
    """Writes f32 tensors, in the order of their names."""
    header, data = {}, b""
    for name in sorted(tensors):
        raw = numpy.asarray(tensors[name], "<f4")
        header[name] = {"dtype": "F32", "shape": list(raw.shape), "data_offsets": [len(data), len(data) + raw.nbytes]}
        data += raw.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def write_csv(path, rows):
    with open(path, "w") as f:
        for row in rows:
            f.write(",".join(repr(x) for x in row) + "\n")


def read_tsv(path):
    """A log as one dictionary a row; names of columns in the order of the file."""
    with open(path) as f:
        lines = [line.rstrip("\n").split("\t") for line in f]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def bits(a):
    """The bits of an array, every NaN alike: what "bit for bit" compares."""
    a = numpy.ascontiguousarray(a)
    if a.dtype.kind != "f":
        return a.tobytes()
    return numpy.where(numpy.isnan(a), numpy.array(numpy.nan, a.dtype), a).astype(a.dtype).tobytes()


def differences(a, b, skip=()):
    """Names under which two sets of tensors differ in a bit, with an example."""
    out = []
    for name in sorted(set(a) | set(b), key=str):
        if name is None or any(str(name).startswith(s) for s in skip):
            continue
        if name not in a or name not in b:
            out.append("%s is only in one" % name)
        elif bits(a[name]) != bits(b[name]):
            x, y = a[name].ravel(), b[name].ravel()
            if x.shape != y.shape:
                out.append("%s has another shape" % name)
                continue
            at = [i for i in range(len(x)) if bits(x[i : i + 1]) != bits(y[i : i + 1])]
            out.append("%s: %d of %d differ, [%d] %r and %r" % (name, len(at), len(x), at[0], x[at[0]], y[at[0]]))
    return out


# ---- programs ----


class Run:
    """What one run of a program left behind."""

    def __init__(self, directory, status, out, err, log):
        self.directory, self.status, self.out, self.err = directory, status, out, err
        self.log = log
        self.rows = read_tsv(log) if log and os.path.exists(log) and log.endswith(".tsv") else []

    def column(self, name, entry="fit"):
        return [float(row[name]) for row in self.rows if row["entry"] == entry]

    def checkpoints(self):
        """Paths by step."""
        found = {}
        for name in sorted(os.listdir(self.directory)):
            if name.endswith(".ckpt"):
                found[int(name.rsplit("-", 1)[1][:-5])] = os.path.join(self.directory, name)
        return found

    def checkpoint(self, step=None):
        found = self.checkpoints()
        return read_safetensors(found[max(found) if step is None else step])


class Program:
    def __init__(self, exe):
        self.exe = exe
        self.directory = os.path.dirname(exe)
        self.runs = 0

    def command(self, *arguments):
        return [self.exe, "--progress", "off"] + [str(a) for a in arguments]

    def run(self, *arguments, status=0, threads=1, log=True, data=None, env=None):
        """Runs in a fresh folder beside the program, into which `data` (name: rows of a csv) is written."""
        self.runs += 1
        directory = "%s.run%d" % (self.exe, self.runs)
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        for name, rows in (data or {}).items():
            if name.endswith(".csv"):
                write_csv(os.path.join(directory, name), rows)
            elif name.endswith(".npy"):
                numpy.save(os.path.join(directory, name), rows)
            else:
                write_safetensors(os.path.join(directory, name), rows)
        return self.again(directory, *arguments, status=status, threads=threads, log=log, env=env)

    def again(self, directory, *arguments, status=0, threads=1, log=True, env=None):
        """Runs in a folder where it ran before."""
        path = os.path.join(directory, "log.tsv")
        options = ["--log", path] if log else []
        code, out, err = sh(self.command("--threads", threads, *options, *arguments), directory, env)
        if status is not None and code != status:
            raise AssertionError("%s %s exits %d, not %d\n%s%s" % (self.exe, arguments, code, status, out, err))
        return Run(directory, code, out, err, path if log else None)


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    maxDiff = None

    def setUp(self):
        self.directory = os.path.join(os.path.abspath(WORK), self.id().split(".", 1)[-1])
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        self.built = 0

    def emit(self, text, *flags, name=None):
        """Writes the model and compiles it; the path of the C file."""
        self.built += 1
        stem = os.path.join(self.directory, name or "p%d" % self.built)
        with open(stem + ".amp", "w") as f:
            f.write(text)
        must([AMPC, stem + ".amp", "-o", stem + ".c", *flags])
        return stem + ".c"

    def compile(self, source, *flags, cc="gcc", suffix=""):
        exe = source[:-2] + suffix
        must([cc, *BASE_FLAGS, *(flags or ["-O1"]), source, "-o", exe, "-lm"])
        return Program(exe)

    def build(self, text, *flags, cc="gcc", cflags=("-O0",)):
        return self.compile(self.emit(text, *flags), *cflags, cc=cc)

    def same(self, a, b, what, skip=()):
        found = differences(a, b, skip)
        if found:
            self.fail("%s:\n  %s" % (what, "\n  ".join(found[:8])))


def main():
    unittest.main(verbosity=1, argv=[sys.argv[0]] + sys.argv[1:])
