#!/bin/sh
# roundtrip.sh AMPC FILE [OPTION…]: the IR text that ampc prints of FILE reads back and prints the same again,
# at once and after every pass; and passes run on what was read back give what they give without the detour.
set -e
ampc=$1 file=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$ampc" "$@" --emit=ir:expand "$file" -o "$folder/end.ir"
for pass in infer cast autodiff clean master step expand; do
    "$ampc" "$@" --emit=ir:$pass "$file" -o "$folder/$pass.ir"
    "$ampc" --passes '' --emit=ir "$folder/$pass.ir" -o "$folder/again.ir"
    cmp "$folder/$pass.ir" "$folder/again.ir"
    [ $pass = expand ] || "$ampc" --emit=ir:expand "$folder/$pass.ir" -o "$folder/again.ir"
    cmp "$folder/end.ir" "$folder/again.ir"
done
