"""How lit runs the text tests: each .amp and .ir file says in its RUN lines what to do with it."""
import os
import shutil

import lit.formats

config.name = "ampc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".amp", ".ir"]
config.excludes = ["examples", "Inputs"]  # inputs of other tests
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.build, "tests", "lit")

config.environment["PATH"] = os.pathsep.join([config.llvm_tools, os.environ.get("PATH", "")])
config.environment["ASAN_OPTIONS"] = "detect_leaks=1"

for spelling, path in [
    ("%ampc", os.path.join(config.build, "ampc")),
    ("%roundtrip", os.path.join(config.test_source_root, "roundtrip.sh") + " " + os.path.join(config.build, "ampc")),
    ("%ir_roundtrip", os.path.join(config.test_source_root, "ir", "roundtrip.sh") + " " + os.path.join(config.build, "ampc")),
    ("%cc", config.cc),
    ("%python", config.python),
    ("%runtime", os.path.join(os.path.dirname(config.test_source_root), "runtime")),
]:
    config.substitutions.append((spelling + r"\b", path))

if shutil.which(config.cc):
    config.available_features.add("cc")
for feature in ["clang", "gcc", "g++"]:
    if shutil.which(feature):
        config.available_features.add(feature)
if config.sanitize:
    config.available_features.add("sanitize")
