# Every tool that the image is there for, once.
set -euo pipefail
[ "$(echo '2^10' | bc)" = 1024 ]
[ "$(echo '{"a": [1, 2, 3]}' | jq '.a | add')" = 6 ]
seq 1 100 | gawk '{ s += $1 } END { exit s != 5050 }'
seq 1 100 > numbers.txt
tar --xz -cf numbers.tar.xz numbers.txt
zip -q numbers.zip numbers.txt
unzip -p numbers.zip | cmp - numbers.txt
