# Sourced by the checks: what one does where it cannot run. It says so and goes for passed, unless
# STRICT_CHECKS=1 is set: a check that did not run has shown nothing.
skip() {
    echo "$(basename "$(dirname "$0")"): skipped, because $1"
    [[ ${STRICT_CHECKS:-0} == 0 ]] || { echo "and STRICT_CHECKS takes that for a failure"; exit 1; }
    exit 0
}
