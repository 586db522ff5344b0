# For checks that run one command after the other, sourced in the project's folder: a folder of their own, `expect`, the closing line.
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

expect() { # TITLE COMMAND...: it must end well
  local title=$1 status
  shift
  "$@" >"$folder/log" 2>&1
  status=$?
  if ((status == 0)); then ((passed += 1)); else
    echo "FAILED: $title (status $status)" >&2
    cat "$folder/log" >&2
    ((failed += 1))
  fi
}

close() { # Closes with `N passed, N failed`
  echo "$passed passed, $failed failed"
  ((failed == 0))
}
