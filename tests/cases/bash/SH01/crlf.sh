#!/bin/bash -e
name="café"
if [ "$name" ]; then
  echo "$0 ${BASH_SOURCE[0]} $name $1" > out.txt
fi
cat <<EOF
line $LINENO
EOF
if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then echo "main ran"; fi
read -r x; echo "stdin: $x"
nosuchcommand
echo not reached