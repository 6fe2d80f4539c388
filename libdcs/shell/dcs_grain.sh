# dcs_grain.sh: make a POSIX shell script a checkpointing grain. Source it (`. dcs_grain.sh`, found in
# PATH as dcs_checkpoint is, which it needs), then:
#
#   dcs_grain_handler                          first: the grain server may ask for checkpoints from here on
#   dcs_grain_time_to_checkpoint               true once after each checkpoint signal
#   dcs_grain_thrashing                        true once after each thrash signal: the host pages
#   dcs_grain_checkpoint MESSAGE STATE         takes a checkpoint: STATE and a newline are put in front of
#                                              what was not read of the input when the grain goes on;
#                                              an empty STATE puts nothing there
#
# `read` takes exactly the bytes up to the newline, so the position of standard input is what was consumed. Descriptor 9
# shares it and is not for the script: so a checkpoint within `while read ...; done <FILE` counts the input, not FILE.
# Output that cannot be written is noticed by its writer: `echo ... || exit 74` (docs/MAKE_A_GRAIN.md).
# Without a grain server the script is an ordinary filter.

dcs_grain_served='' dcs_grain_asked='' dcs_grain_thrashed=''

dcs_grain_handler() {
    [ -z "$dcs_grain_served" ] && [ -n "${DCS_GRAIN_DIR-}" ] && [ -n "${DCS_GRAIN_SEQUENCE-}" ] || return 0
    if ! command -v dcs_checkpoint >/dev/null; then
        echo "dcs_grain.sh: dcs_checkpoint is not in PATH; it is installed beside dcs_grain.sh" >&2
        exit 70
    fi
    dcs_checkpoint --is-grain || return 0
    dcs_grain_served=1
    exec 9<&0
    trap 'dcs_grain_asked=1' USR1
    trap 'dcs_grain_thrashed=1' USR2
    true >"$DCS_GRAIN_DIR/announce" || exit 74
}

dcs_grain_time_to_checkpoint() {
    [ -n "$dcs_grain_asked" ] || return 1
    dcs_grain_asked=''
}

dcs_grain_thrashing() {
    [ -n "$dcs_grain_thrashed" ] || return 1
    dcs_grain_thrashed=''
}

dcs_grain_checkpoint() {
    if [ $# -ne 2 ]; then
        echo "dcs_grain.sh: dcs_grain_checkpoint takes a MESSAGE and a STATE, each as one word: quote them" >&2
        exit 70
    fi
    [ -n "$dcs_grain_served" ] || return 0
    printf '%s' "${2:+$2
}" | dcs_checkpoint -m "$1" -i 9 || exit $?
    # The next increments are there. Nothing may be written before this script's output goes to them.
    DCS_GRAIN_SEQUENCE=$((DCS_GRAIN_SEQUENCE + 1))
    [ -w "$DCS_GRAIN_DIR/out.$DCS_GRAIN_SEQUENCE" ] && [ -w "$DCS_GRAIN_DIR/err.$DCS_GRAIN_SEQUENCE" ] || exit 74
    exec >>"$DCS_GRAIN_DIR/out.$DCS_GRAIN_SEQUENCE" 2>>"$DCS_GRAIN_DIR/err.$DCS_GRAIN_SEQUENCE"
}
