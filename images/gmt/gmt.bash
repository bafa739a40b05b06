# Read by every bash of a job (BASH_ENV). As a function, gmt can tell a failure that the script deals with (if, &&, ||, !)
# from one that passes unnoticed, and say at which line; the command of the same name serves everything else.
gmt() {
  { local -; set +x; } 2>/dev/null
  local code=0
  GMT_FAILURES= command gmt "$@" || code=$?
  # bash does not obey "set -e" where a failure is dealt with, down to sub-shells: so this trap runs only elsewhere.
  ((code == 0)) || (
    trap 'printf "%d\t%s: line %d: gmt %s: exit status %d\n" "$code" "$0" "${BASH_LINENO[0]}" "$1" "$code" >>"$GMT_FAILURES"' EXIT
    set -e
    (exit "$code")
    trap - EXIT
  )
  return "$code"
}
