"""Tag a release: `make release` checks that all files name one version, tags it and pushes the tag.

The workflow `.github/workflows/release.yml` then builds, tests and publishes. `--check vX.Y.Z` only checks. It needs
no package but Python's own, since the workflow runs it before anything is installed.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = {
    "CITATION.cff": r"^version: (\S+)$",
    "recipe/recipe.yaml": r'^  version: "([^"]+)"$',
    "CHANGELOG.md": r"^## (.+)$",
}
"""Where the version stands besides the package itself, each with the first line that has it."""


def version(root: Path = ROOT) -> str:
    """Return the version of the package."""
    text = (root / "src" / "unbandit" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    assert found is not None
    return found[1]


def problems(root: Path = ROOT, tag: str | None = None) -> list[str]:
    """Return what has to be mended before the version can be released."""
    expected, found = version(root), []
    if tag is not None and tag != f"v{expected}":
        found.append(f"the tag is {tag}; expected v{expected}, the version of the package")
    for name, pattern in PLACES.items():
        line = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        said = "no version" if line is None else line[1]
        if said != expected:
            found.append(f'{name} has "{said}"; expected "{expected}"')
    return found


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main(words: list[str]) -> int:
    """Check; tag and push unless only a check was asked for; return the exit status."""
    only_check = words[:1] == ["--check"]
    wrong = problems(tag=words[1] if only_check and len(words) > 1 else None)
    name = f"v{version()}"
    if not only_check:
        if _git("status", "--porcelain"):
            wrong.append("there are changes that are not committed")
        if _git("tag", "--list", name):
            wrong.append(f"the tag {name} exists already")
    if wrong:
        print("Not released:", *(f"- {line}" for line in wrong), sep="\n", file=sys.stderr)
        return 1
    if not only_check:
        _git("tag", "--annotate", name, "--message", f"Version {name[1:]}")
        _git("push", "origin", name)
        print(f"Tagged and pushed {name}: the release workflow builds, tests and publishes it.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
