#!/bin/sh
# The ledger grain (ledger.c has what it does) in shell; PATH leads to dcs_grain.sh.
. dcs_grain.sh
dcs_grain_handler
pause=${1:-0} every=${2:-0} how=${3-} lines=0 sum=0
while IFS= read -r text || [ -n "$text" ]; do
    case $lines$text in
        "0#ledger "*)
            text=${text#"#ledger "}
            lines=${text% *} sum=${text#* }
            continue ;;
    esac
    lines=$((lines + 1)) sum=$(((sum * 31 + ${#text}) % 1000003))
    printf '%s\n' "$lines $sum $text" || exit 74
    [ $((lines % 100)) -ne 7 ] || echo "note at line $lines" >&2
    if dcs_grain_time_to_checkpoint || { [ "$every" -gt 0 ] && [ $((lines % every)) -eq 0 ]; }; then
        dcs_grain_checkpoint "line $lines" "#ledger $lines $sum"
        [ "$how" != again ] || exit 85
    fi
    [ "$pause" -eq 0 ] || [ $((lines % pause)) -ne 0 ] || sleep 0.01
done
echo "end $lines $sum" || exit 74
