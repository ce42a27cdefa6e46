#!/bin/sh
# roundtrip.sh AMPC FILE: what --emit=ast prints must parse, and print the same again.
set -e
once=$("$1" --emit=ast "$2")
twice=$(printf '%s\n' "$once" | "$1" --emit=ast -)
[ -n "$once" ] || { echo "$2 prints nothing"; exit 1; }
[ "$once" = "$twice" ] || { echo "$2 prints differently the second time:"; echo "$twice"; exit 1; }
