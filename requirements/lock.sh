#!/bin/sh
# Rewrites requirements/build.txt, lock.txt (CPUs) and lock-cuda.txt: exact versions and hashes of everything that running,
# testing and building need, for Python 3.11-3.13 on Linux and macOS. Pins that still fit are kept; UPGRADE=1 renews
# all. The resolver, uv, goes into a throwaway environment and is used for nothing else.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check 'uv>=0.13'

# torch is installed by setup.sh; the rest fails beside a CPU build of it or wastes gigabytes. They are resolved (a marker that
# never holds takes them out of every real environment) and not written.
never=''
: >"$work/never.txt"
for name in torch torchaudio torchcodec torchvision triton; do
    never="$never --no-emit-package $name"
    echo "$name; sys_platform == 'never'" >>"$work/never.txt"
done

compile() {
    "$work/venv/bin/uv" --config-file requirements/uv.toml pip compile --quiet --no-progress \
        --universal --python-version 3.11 --generate-hashes ${UPGRADE:+--upgrade} \
        --custom-compile-command 'make lock' "$@" >/dev/null
}
compile requirements/build.in --output-file requirements/build.txt
# shellcheck disable=SC2086
compile $never --override "$work/never.txt" pyproject.toml --extra train --extra dev --extra docs \
    requirements/engines.in requirements/data.in --output-file requirements/lock.txt
compile pyproject.toml --extra train --extra dev --extra docs \
    requirements/engines-cuda.in requirements/data.in --output-file requirements/lock-cuda.txt

if grep -E '^(torch|torchvision|torchaudio|torchcodec|triton|nvidia-[a-z0-9-]+)==' requirements/lock.txt; then
    echo "lock: the packages above must stay out of requirements/lock.txt; find what pulls them in" >&2
    exit 1
fi
echo "lock: $(grep -c '==' requirements/lock.txt) packages pinned; run make setup to install them"
